import { resolve } from "node:path";
import type { Double, Json } from "../../test/doubles/chat-server.ts";
import { serveConfig, sources, upstreamEntry } from "../../test/sessions/sources.ts";
import { sourceApis } from "../../src/wire/apis/source-port.ts";
import { writeScriptedModel } from "./scripted-model.ts";
import { inPlace } from "../place.ts";
import { keepClient, scenarios } from "../report.ts";
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

/** Upstreams that have the scripted model, by the API that they are asked with. They try nothing again: the clients do. */
function upstreamsBehind(url: string): readonly Json[] {
  return sourceApis.map((api) => ({
    kind: "upstream",
    name: `over-${api}`,
    url: url + (api === "gemini" ? "/v1beta" : "/v1"),
    api,
    key: "none",
    retries: 0,
    models: { [`over-${api}`]: "scripted" },
  }));
}

/** The scripted model as a local one, by llama.cpp. */
function localModel(): Json {
  const path = inPlace("models", "scripted.gguf");
  writeScriptedModel(path);
  return { kind: "local", name: "over-local", path, threads: 1 };
}

/** Runs the scenarios over an upstream of each API, and over a local model. Returns a row for each. */
async function runOverOthers(client: RealClient, url: string): Promise<Row[]> {
  const rows: Row[] = [];
  for (const source of [...sourceApis, "local"]) {
    const said = await runClient(client, url, `over-${source}`, []);
    const tried = said.filter(({ scenario }) => scenarios.has(scenario));
    const failed = tried.filter(({ ok }) => ok === false).map(({ scenario, detail }) => `${scenario}: ${detail}`);
    const trial = source === "local" ? "over a local model" : `over an upstream, ${source}`;
    rows.push({
      trial,
      ok: tried.length > 0 && failed.length === 0,
      detail: failed.join("; ") || `${tried.length} scenarios`,
    });
  }
  return rows;
}

/**
 * Runs the programs of clients over one Truewire, which serves the scripted model and those of sessions, and counts their scenarios.
 * `isQuick`: each client is installed before it runs; otherwise it also runs over upstreams and a local model, and the results are written.
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
  const behind = isQuick ? undefined : await serveConfig({ models: programs });
  const others = behind ? [...upstreamsBehind(behind.url), localModel()] : [];
  const truewire = await serveConfig({ hostedTools, models: [...programs, ...upstreams, ...others] });
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
      if (!isQuick) rows.push(...(await runOverOthers(client, truewire.url)));
      for (const { trial, ok, detail } of rows) {
        if (ok !== null) count[ok ? "passed" : "failed"]++;
        const mark = ok === null ? "–" : ok ? "✓" : "✗";
        console.log(`${mark} ${client.name} ${version}: ${trial} (${detail.replaceAll(/\s+/g, " ").slice(0, 400)})`);
      }
      if (!isQuick) keepClient(client, version, rows);
    }
  } finally {
    await truewire.stop();
    await behind?.stop();
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
