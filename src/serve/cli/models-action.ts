import { profileEntries } from "../../wire/apis/adapt/server-profile.ts";
import type { ServerProfileReport } from "../../wire/core/engine.ts";
import type { ControlledModel, ControlledModels, Progress } from "../server/admin/model-control.ts";
import { AdminClient } from "./admin-client.ts";
import type { ServerFlags } from "./admin-client.ts";
import { openProgressLine } from "./progress-line.ts";
import { showTable } from "./show-table.ts";

/** `truewire models list`. */
export async function listModels(
  flags: ServerFlags & { readonly json?: true; readonly verbose?: true; readonly watch?: true },
): Promise<void> {
  const client = new AdminClient(flags);
  if (flags.watch) {
    for await (const states of client.watch()) {
      if (process.stdout.isTTY) console.clear();
      if (flags.json) console.log(JSON.stringify(states));
      else showStates(states);
    }
    throw new Error("The server has ended the connection.");
  }
  const states = await client.list();
  if (flags.json) return console.log(JSON.stringify(states, null, 2));
  showStates(states);
  if (flags.verbose)
    for (const { profiles = [] } of states.models) for (const profile of profiles) showProfile(profile);
}

function showStates(states: Pick<ControlledModels, "memory"> & { readonly models: readonly ListedModel[] }): void {
  showTable([["MODEL", "STATE", "MEMORY", "BUSY", "LOADS", "DEVICE"], ...states.models.map(rowOf)]);
  const { limit, used } = states.memory;
  console.log(
    `\nMemory: ${bytes(used)} of ${limit === null ? "any amount" : bytes(limit)}, as estimated from the files.`,
  );
}

/** `truewire models load|unload|pull`. */
export async function changeModel(verb: "load" | "unload" | "pull", model: string, flags: ServerFlags): Promise<void> {
  const line = openProgressLine(process.stderr);
  let { name, path } = { name: model, path: "" };
  try {
    const done = await new AdminClient(flags).change(verb, model, (progress) => line.show(wordsOf(progress, model)));
    ({ name = model, path = "" } = done);
  } finally {
    line.close();
  }
  console.log(verb === "pull" ? path : `${name} is ${verb === "load" ? "loaded" : "unloaded"}.`);
}

/** `truewire models keep`. */
export async function keepModel(model: string, flags: ServerFlags & { readonly off?: true }): Promise<void> {
  const keep = flags.off !== true;
  const { name = model } = await new AdminClient(flags).change("keep", model, () => {}, { keep });
  console.log(`${name} is ${keep ? "kept in memory" : "no longer kept"}.`);
}

/** `truewire models forget`. */
export async function forgetLessons(
  model: string,
  lesson: string | undefined,
  flags: ServerFlags & { readonly at?: string },
): Promise<void> {
  const which = { ...(lesson !== undefined && { lesson }), ...(flags.at !== undefined && { url: flags.at }) };
  const { forgotten = [] } = await new AdminClient(flags).change("forget", model, () => {}, which);
  console.log(`Forgotten about ${model}: ${forgotten.join(", ")}.`);
}

type ListedModel = Pick<ControlledModel, "name" | "state" | "memory" | "busy" | "load" | "keep" | "device">;

/** What the server of a model accepts: each entry with its value and where it comes from. */
function showProfile(report: ServerProfileReport): void {
  const { url, model, server } = report;
  console.log(`\n${model} at ${url}${server === undefined ? "" : ` (${server})`}`);
  const entries = profileEntries(report);
  if (entries.length === 0) console.log("  accepts everything that an unknown server is expected to accept");
  for (const { name, value, origin } of entries) console.log(`  ${name}: ${JSON.stringify(value)} (${origin})`);
  for (const { id, learned = "before dates were kept" } of report.lessons)
    console.log(`  ${id} was learned ${learned}; to forget it: truewire models forget ${model} ${id}`);
}

function rowOf({ name, state, memory, busy, load, keep, device = "-" }: ListedModel): string[] {
  const size = memory === undefined ? "-" : memory === null ? "unknown" : bytes(memory);
  return [
    name,
    state,
    size,
    busy === undefined ? "-" : String(busy),
    load === undefined ? "-" : keep ? `${load}, kept` : load,
    device,
  ];
}

function wordsOf(
  { phase, fraction, bytes: done, total_bytes: total }: Progress,
  model: string,
): { text: string; fraction?: number } {
  const text = { wait: "waiting for", download: "downloading", load: "loading" }[phase];
  const sizes = done === undefined || !total ? "" : ` ${bytes(done)} of ${bytes(total)}`;
  return { text: `${text} ${model}${sizes}`, ...(fraction !== undefined && { fraction }) };
}

function bytes(count: number): string {
  if (count < 2 ** 20) return `${(count / 2 ** 10).toFixed(0)} KiB`;
  return count < 2 ** 30 ? `${(count / 2 ** 20).toFixed(0)} MiB` : `${(count / 2 ** 30).toFixed(1)} GiB`;
}
