import { basename } from "node:path";
import { parseArgs } from "node:util";
import { realClients } from "./clients/list.ts";
import { runClients } from "./clients/run.ts";
import { startTruewire } from "../test/support/serve.ts";
import { differences, doubles, ollamaDifferences, startLikeDouble } from "./doubles.ts";
import { freePort } from "./place.ts";
import { compareModels } from "./real-models.ts";
import { keep, writeTable } from "./report.ts";
import type { Results, Row } from "./report.ts";
import { realServers } from "./servers/list.ts";
import type { RealServer, StartedServer } from "./servers/server.ts";
import { compareTemplates } from "./templates.ts";
import { featureTrials, restartTrial } from "./trials/features.ts";
import { judgeTrials } from "./trials/judge.ts";
import { suites } from "./suites/list.ts";
import { runSuites } from "./suites/run.ts";
import { sessionTrials } from "./trials/sessions.ts";
import type { Trial } from "./trials/trial.ts";

const usage = `usage: npm run interop [-- COMMAND [NAME…]]
  install NAME…   installs servers: ${realServers.map(({ id }) => id).join(", ")}
                  or clients: ${realClients.map(({ id }) => id).join(", ")}
                  or suites: ${suites.map(({ id }) => id).join(", ")}
  clients [NAME…] runs the clients that are installed, over a scripted model
  servers [NAME…] runs the trials over the servers that are installed, and writes interop/results/ (default)
  suites [NAME…]  runs the test suites of other projects that are installed, over a program that does what is asked
  doubles [NAME…] sends the same requests to the real servers and to their doubles in test/doubles, and prints where they differ
  models [NAME…]  compares Truewire's own engine with llama-server over the same real models (demo, half, gemma): tokens, texts,
                  logprobs, calls, schemas; and embeddings (minilm) with Transformers' and llama-server's
  templates DIR   renders the chat templates of a folder with Transformers, too, and prints which prompts differ
  report          writes docs/compatibility.md from interop/results/
options:
  --count N       texts for the tokenizers of models (default 10,000), or conversations for each template (default 400)
  --quick         only what installs within two minutes, which is installed first; results are not written
  --only WORD     only trials whose name has the word; results are not written`;

async function runOver(server: RealServer, trials: readonly Trial[]): Promise<Results> {
  const upstream = server.over === undefined ? undefined : await startById(server.over);
  const port = await freePort();
  let started: StartedServer | undefined;
  let truewire: Awaited<ReturnType<typeof startTruewire>> | undefined;
  const rows: Row[] = [];
  try {
    const first = (started = await server.start(port, upstream));
    const named = server.listsNoModels === true ? ["--model", first.model] : [];
    truewire = await startTruewire([`${first.url}/v1`, ...named]);
    const listed = (await (await fetch(`${truewire.url}/v1/models`)).json()) as { data: { id: string }[] };
    const model = listed.data.find(({ id }) => id === first.model)?.id ?? listed.data[0]?.id;
    if (model === undefined) throw new Error(`Truewire lists no model of ${server.name}`);
    const restart = async (): Promise<void> => {
      started = await server.start(port, upstream);
    };
    for (const trial of trials) {
      const { ok, detail } = await trial
        .run({ truewire: truewire.url, model, server, started: first, restart })
        .catch((error: unknown) => ({ ok: false, detail: error instanceof Error ? error.message : String(error) }));
      const plain = detail.replaceAll(/\s+/g, " ").slice(0, 400);
      rows.push({ trial: trial.name, ok: ok ?? null, detail: plain });
      console.log(`${ok === undefined ? "–" : ok ? "✓" : "✗"} ${server.name}: ${trial.name}${plain && ` (${plain})`}`);
    }
    return {
      server: server.name,
      from: server.from,
      version: server.version() ?? "",
      // A path is one of this machine.
      model: basename(first.model),
      date: new Date().toISOString().slice(0, 10),
      rows,
    };
  } finally {
    await truewire?.stop();
    await started?.stop();
    await upstream?.stop();
  }
}

async function startById(id: string): Promise<StartedServer> {
  const server = realServers.find((one) => one.id === id);
  if (!server) throw new Error(`no server is named ${id}`);
  if (server.version() === undefined)
    throw new Error(`${server.name} is not installed: npm run interop -- install ${id}`);
  return server.start(await freePort());
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: "boolean", default: false }, only: { type: "string" }, count: { type: "string" } },
});
const [what = "servers", ...names] = positionals;
const isOfServers = !["models", "templates"].includes(what);
const unknown = !isOfServers
  ? undefined
  : names.find((name) => ![...realServers, ...realClients, ...suites].some(({ id }) => id === name));
const isChosen = ({ id, isQuick }: { id: string; isQuick?: boolean }): boolean =>
  names.length > 0 ? names.includes(id) : !values.quick || isQuick === true;
const chosen = realServers.filter(isChosen);
const chosenClients = realClients.filter(isChosen);
const chosenSuites = suites.filter(isChosen);

if (
  unknown !== undefined ||
  !["install", "servers", "clients", "suites", "doubles", "models", "templates", "report"].includes(what)
) {
  console.error(`${unknown === undefined ? `${what} is no command` : `${unknown} is no server`}\n${usage}`);
  process.exitCode = 2;
} else if (what === "report") writeTable();
else if (what === "models")
  await compareModels(names.length > 0 ? names : ["demo", "half", "gemma", "minilm"], Number(values.count ?? 10_000));
else if (what === "templates")
  await compareTemplates(names[0] ?? "../shared/chat-templates", Number(values.count ?? 400));
else if (what === "install") {
  for (const one of [...chosen, ...chosenClients, ...chosenSuites]) {
    await one.install().then(
      () => console.log(`installed ${one.name} ${one.version()} (${one.from})`),
      (error: unknown) => {
        console.log(`${one.name} is not installed: ${error instanceof Error ? error.message : String(error)}`);
        process.exitCode = 1;
      },
    );
  }
} else if (what === "doubles") {
  for (const server of chosen.filter(({ id }) => Object.hasOwn(doubles, id))) {
    if (server.version() === undefined) {
      console.log(`skipped ${server.name}: it is not installed (npm run interop -- install ${server.id})`);
      continue;
    }
    const started = await (startLikeDouble[server.id]?.() ?? startById(server.id));
    const compare = async (): Promise<string[]> => [
      ...(await differences(server.id, started)),
      ...(server.id === "ollama" ? await ollamaDifferences(started) : []),
    ];
    const lines = await compare().finally(() => started.stop());
    console.log([`${server.name} ${server.version()}: ${lines.length} requests differ`, ...lines].join("\n"));
    if (lines.length > 0) process.exitCode = 1;
  }
} else if (what === "suites") {
  const { passed, failed, unexplained } = await runSuites(chosenSuites);
  console.log(`${passed} passed, ${failed} failed, ${unexplained} of them unexplained`);
  if (unexplained > 0) process.exitCode = 1;
} else if (what === "clients") {
  const { passed, failed } = await runClients(chosenClients, values.quick);
  console.log(`${passed} passed, ${failed} failed`);
  if (failed > 0) process.exitCode = 1;
} else {
  let passed = 0;
  let failed = 0;
  const trials = [...judgeTrials, ...featureTrials, ...sessionTrials, restartTrial].filter(({ name }) =>
    name.includes(values.only ?? ""),
  );
  for (const server of chosen) {
    if (values.quick) await server.install().catch(() => undefined);
    if (server.version() === undefined) {
      console.log(`skipped ${server.name}: it is not installed (npm run interop -- install ${server.id})`);
      continue;
    }
    try {
      const results = await runOver(server, trials);
      passed += results.rows.filter(({ ok }) => ok === true).length;
      failed += results.rows.filter(({ ok }) => ok === false).length;
      if (!values.quick && values.only === undefined) keep(server.id, results);
    } catch (error) {
      failed++;
      console.log(`✗ ${server.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  if (failed > 0) process.exitCode = 1;
}
