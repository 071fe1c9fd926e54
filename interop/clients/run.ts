import { resolve } from "node:path";
import type { Double } from "../../test/doubles/chat-server.ts";
import { serveConfig, sources, upstreamEntry } from "../../test/sessions/sources.ts";
import { keepClient } from "../report.ts";
import type { Row } from "../report.ts";
import { runClient } from "./client.ts";
import type { RealClient } from "./client.ts";

/** The doubles of servers that demand state back, by the names of their models. */
const strict = sources.filter(({ name }) => name === "DeepSeek" || name === "Gemini 3");

/** What runs the tools that vendors run, for the scenario `hosted`. */
const hostedTools = {
  webSearch: resolve("interop/fixtures/search.ts"),
  mcp: { notes: resolve("examples/mcp-notes.js") },
  programs: {
    code_interpreter: resolve("test/hosted/run-code.mjs"),
    file_search: resolve("test/hosted/search-files.mjs"),
  },
};

/**
 * Runs the programs of clients over one Truewire, which serves the scripted model and those of sessions, and counts their scenarios.
 * `isQuick`: each client is installed before it runs; otherwise the results are written.
 */
export async function runClients(
  clients: readonly RealClient[],
  isQuick: boolean,
): Promise<{ passed: number; failed: number }> {
  const doubles = new Map<string, Double>();
  for (const source of strict) doubles.set(source.name, await source.start());
  const programs = ["scripted", "task"].map((name) => ({
    kind: "program",
    name,
    program: resolve(`interop/fixtures/${name}.ts`),
  }));
  const upstreams = strict.map((source) => upstreamEntry(source, doubles.get(source.name)?.url ?? ""));
  const truewire = await serveConfig({ hostedTools, models: [...programs, ...upstreams] });
  const count = { passed: 0, failed: 0 };
  try {
    for (const client of clients) {
      const why = isQuick && client.version() === undefined ? await problemOfInstall(client) : undefined;
      const version = client.version();
      if (version === undefined) {
        const hint = why ?? `npm run interop -- install ${client.id}`;
        console.log(`skipped ${client.name}: it is not installed (${hint})`);
        continue;
      }
      const before = [...doubles].map(([name, { refusals, lost }]) => [name, refusals.length, lost.length] as const);
      const sessions = client.hasSessions === true ? ["task", ...doubles.keys()] : [];
      const said = await runClient(client, truewire.url, "scripted", sessions);
      const rows: Row[] = said.map(({ scenario, ok, detail }) => ({ trial: scenario, ok, detail }));
      // What the server refused, and what its model has lost, although the client has noticed nothing.
      for (const [name, refused, lost] of before) {
        const double = doubles.get(name);
        for (const detail of [...(double?.refusals.slice(refused) ?? []), ...(double?.lost.slice(lost) ?? [])])
          rows.push({ trial: `session over ${name}`, ok: false, detail });
      }
      for (const { trial, ok, detail } of rows) {
        if (ok !== null) count[ok ? "passed" : "failed"]++;
        const mark = ok === null ? "–" : ok ? "✓" : "✗";
        console.log(`${mark} ${client.name} ${version}: ${trial} (${detail.replaceAll(/\s+/g, " ").slice(0, 400)})`);
      }
      if (!isQuick) keepClient(client, version, rows);
    }
  } finally {
    await truewire.stop();
    for (const double of doubles.values()) await double.close();
  }
  return count;
}

/** Installs a client; returns why that is not possible. */
async function problemOfInstall(client: RealClient): Promise<string | undefined> {
  try {
    await client.install();
    return undefined;
  } catch (error) {
    return String(error).replaceAll(/\s+/g, " ").slice(0, 300);
  }
}
