import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RealClient } from "./clients/client.ts";
import type { Suite } from "./suites/suite.ts";

const folder = "interop/results";
const clientFolder = join(folder, "clients");
const suiteFolder = join(folder, "suites");
const modelFolder = join(folder, "models");
const page = "docs/compatibility.md";

export interface Row {
  readonly trial: string;
  /** Null: the server or its model has no such thing. */
  readonly ok: boolean | null;
  readonly detail: string;
}

/** How the detail of a session says how many turns were done. */
export const turnsDone = (done: number, tried: number): string => `${done} of ${tried} turns`;

/** The turns of all sessions over a server. */
function allTurns(rows: readonly Row[]): string {
  const counts = rows.flatMap(({ detail }) => {
    const [, done, tried] = /^(\d+) of (\d+) turns/.exec(detail) ?? [];
    return tried === undefined ? [] : [[Number(done), Number(tried)] as const];
  });
  if (counts.length === 0) return "";
  const [done, tried] = counts.reduce(([one, other], [more, most]) => [one + more, other + most], [0, 0]);
  return `${done} of ${tried}`;
}

/** What came of the trials over one server. */
export interface Results {
  readonly server: string;
  readonly from: string;
  readonly version: string;
  readonly model: string;
  readonly date: string;
  readonly rows: readonly Row[];
}

/** Keeps the results of a server, in place of those of an earlier run. */
export function keep(id: string, results: Results): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${id}.json`), `${JSON.stringify(results, null, 2)}\n`);
}

/** What came of the scenarios of one client. */
interface ClientResults {
  readonly client: string;
  readonly from: string;
  readonly version: string;
  readonly date: string;
  readonly rows: readonly Row[];
}

/** Keeps the results of a client, in place of those of an earlier run. What a scenario that is done says is only printed. */
export function keepClient({ id, name, from }: RealClient, version: string, rows: readonly Row[]): void {
  mkdirSync(clientFolder, { recursive: true });
  const results: ClientResults = {
    client: name,
    from,
    version,
    date: new Date().toISOString().slice(0, 10),
    rows: rows.map(({ trial, ok, detail }) => ({
      trial,
      ok,
      detail: ok === true ? "" : detail.replaceAll(/\s+/g, " ").slice(0, 400),
    })),
  };
  writeFileSync(join(clientFolder, `${id}.json`), `${JSON.stringify(results, null, 2)}\n`);
}

/** A test of another project that fails. */
export interface SuiteFailure {
  readonly test: string;
  /** What it is due to: Truewire, the model that answers, or the suite; null: not known yet. */
  readonly whose: "Truewire" | "model" | "suite" | null;
  readonly why: string;
}

interface SuiteCounts {
  readonly passed: number;
  readonly skipped: number;
  readonly failures: readonly SuiteFailure[];
}

/** What came of one test suite. */
interface SuiteResults extends SuiteCounts {
  readonly suite: string;
  readonly from: string;
  readonly version: string;
  readonly date: string;
  readonly leftOut: string;
}

/** Keeps the results of a suite, in place of those of an earlier run. */
export function keepSuite({ id, name, from, leftOut = "" }: Suite, version: string, counts: SuiteCounts): void {
  mkdirSync(suiteFolder, { recursive: true });
  const date = new Date().toISOString().slice(0, 10);
  const results: SuiteResults = { suite: name, from, version, date, leftOut, ...counts };
  writeFileSync(join(suiteFolder, `${id}.json`), `${JSON.stringify(results, null, 2)}\n`);
}

/** What came of comparing servers over one model. */
interface ModelResults {
  readonly model: string;
  readonly date: string;
  readonly rows: readonly string[];
}

/** Keeps the comparisons over a model, in place of those of an earlier run. */
export function keepModel(model: string, rows: readonly string[]): void {
  mkdirSync(modelFolder, { recursive: true });
  const results: ModelResults = { model, date: new Date().toISOString().slice(0, 10), rows };
  writeFileSync(join(modelFolder, `${model}.json`), `${JSON.stringify(results, null, 2)}\n`);
}

function readResults<T>(from: string): T[] {
  if (!existsSync(from)) return [];
  return readdirSync(from)
    .filter((file) => file.endsWith(".json"))
    .toSorted()
    .map((file) => JSON.parse(readFileSync(join(from, file), "utf8")) as T);
}

/** Writes docs/compatibility.md from the results of the last runs. */
export function writeTable(): void {
  const results = readResults<Results>(folder).toSorted((one, other) => one.server.localeCompare(other.server));
  const text = [
    "# Compatibility",
    "",
    "The servers and clients that Truewire was tested with, on one machine and with small models, and the results. `npm run interop` makes these",
    "tables; `npm run interop -- install NAME` installs a server or a client in a folder of its own. ✓: done; ✗: not; –: the server, its model or",
    "the client has no such thing, or the line only reports.",
    "",
    ...clientTable(readResults<ClientResults>(clientFolder)),
    ...suiteTable(readResults<SuiteResults>(suiteFolder)),
    ...modelLists(readResults<ModelResults>(modelFolder)),
    "## Servers",
    "",
    "Each trial runs with Truewire in front of the server, unless it says that it asks the server itself. [`truewire doctor`](doctor.md) names the",
    "version of this table for a server that it recognizes.",
    "",
    "What a server ignores stays ignored with Truewire in front, since Truewire sends each request once: where a server ignores",
    "`tool_choice: required` (llama-cpp-python, mellea, OGX, Ollama, Transformers), `stop` and `logprobs` (mellea, Transformers), `n` or `response_format`",
    "(Transformers), the answer is the one that its model gave. `truewire check` lists these members as errors (`request/required`, `body/n`).",
    "",
    "| server | version | model | date | done of tried | turns of sessions |",
    "| --- | --- | --- | --- | --- | --- |",
    ...results.map(({ server, from, version, model, date, rows }) => {
      const tried = rows.filter(({ ok }) => ok !== null);
      const done = tried.filter(({ ok }) => ok === true).length;
      return `| [${server}](#${anchorOf(server)}) (\`${from}\`) | ${version} | ${cell(model)} | ${date} | ${done} of ${tried.length} | ${allTurns(rows)} |`;
    }),
    "",
    "Not tested, as it was not installed from a package registry:",
    "",
    ...notInstalled.map((reason) => `- ${reason}`),
    ...results.flatMap(({ server, rows }) => [
      "",
      `### ${server}`,
      "",
      "| trial | | |",
      "| --- | --- | --- |",
      ...rows.map(lineOf),
    ]),
    "",
  ];
  writeFileSync(page, text.join("\n"));
}

/** Servers that were tried, and why they are not in the table. */
const notInstalled = [
  "LocalAI 4.9 (2026-12-01): Go's module proxy refuses its list of versions and has v1.40.0 of 2023 alone. Its Makefile downloads protoc, whose output the repository does not have, and its llama.cpp backend is a program in C++ over gRPC's C++ library, which it compiles first, or an image of a container registry.",
];

const modelNames: Readonly<Record<string, string>> = {
  demo: "the demo model",
  half: "Qwen2.5 Coder 0.5B Instruct, Q4_K_M",
  gemma: "Gemma 3 270M, Q4_K_M, a base model",
  minilm: "MiniLM, embeddings",
};

/** What each engine makes of the same model. */
function modelLists(results: readonly ModelResults[]): string[] {
  if (results.length === 0) return [];
  return [
    "## Models",
    "",
    "The same file in Truewire's own engine, in llama-server and in Ollama (`npm run interop -- models`): the tokens of texts in twenty scripts, the",
    "most probable texts and their log probabilities, calls that the model makes, and answers by five JSON schemas. Ollama lets its models think,",
    "has a penalty of 1.1 for tokens that repeat, and sends plain text, without roles, to a file whose chat template is like none of its own: with",
    "the same prompt and no penalty, its texts are the same as often as llama-server's. The first tokens that differ are about equally probable.",
    "",
    ...results.flatMap(({ model, date, rows }) => [
      `### ${modelNames[model] ?? model} (${date})`,
      "",
      ...rows.map((row) => `- ${row}`),
      "",
    ]),
  ];
}

/** The test suites; below it, each test that fails, with the reason. */
function suiteTable(results: readonly SuiteResults[]): string[] {
  if (results.length === 0) return [];
  return [
    "## Test suites of other projects",
    "",
    "Their tests run unchanged against Truewire, over a program that does what is asked, or over a server that gives recorded answers",
    "(`npm run interop -- suites`). A test that fails does so for what Truewire does otherwise, for the model, or for what the suite wants.",
    "",
    "| suite | version | date | passed | failed | skipped | left out |",
    "| --- | --- | --- | --- | --- | --- | --- |",
    ...results.map(
      ({ suite, from, version, date, leftOut, passed, skipped, failures }) =>
        `| ${suite} (\`${from}\`) | ${version} | ${date} | ${passed} | ${failures.length} | ${skipped} | ${cell(leftOut)} |`,
    ),
    "",
    ...results.flatMap(({ suite, failures }) => {
      // Tests that fail for the same reason are one line.
      const reasons = new Map<string, string[]>();
      for (const { test, whose, why } of failures) {
        const reason = `${whose ?? "not known"}: ${why}`;
        reasons.set(reason, [...(reasons.get(reason) ?? []), `\`${shortName(test)}\``]);
      }
      return [...reasons].map(([reason, tests]) => `- ${suite}, ${tests.join(", ")}: ${reason}`);
    }),
    "",
  ];
}

/** The name of a test without the path of its file. */
const shortName = (test: string): string => test.slice(test.lastIndexOf("/") + 1).replace(/^[\w-]+\.py::/, "");

export const scenarios: ReadonlySet<string> = new Set([
  "stream",
  "tools",
  "structured",
  "error",
  "cancel",
  "reasoning",
]);

/** The clients and their scenarios; below it, what is not done or not there. */
function clientTable(results: readonly ClientResults[]): string[] {
  if (results.length === 0) return [];
  const sorted = results.toSorted((one, other) => one.client.localeCompare(other.client));
  const notes = sorted.flatMap(({ client, rows }) =>
    rows.filter(({ ok }) => ok !== true).map(({ trial, detail }) => `- ${client}, ${trial}: ${detail}`),
  );
  return [
    "## Clients",
    "",
    "Each client talks to a scripted model: a stream, a loop with tools, structured output, an unknown model and a request that fails once, a",
    "client that leaves, and reasoning. Hosted tools are those that vendors run, which Truewire runs in their place. Sessions are turns",
    "with tools over a program and over doubles of DeepSeek and Gemini 3, which demand the state of their turns back; the other clients' are in",
    "[sessions.md](sessions.md). Upstreams: all scenarios over an upstream of each API (Chat Completions, Responses, Messages, Ollama, Gemini), of",
    "which each asks the scripted model. Local: all scenarios over the same script as a model that llama.cpp runs, which fails for no request. Empty:",
    "not run.",
    "",
    `| client | version | date | ${[...scenarios].join(" | ")} | hosted tools | sessions | upstreams | local |`,
    `| --- | --- | --- | ${Array.from(scenarios, () => "---").join(" | ")} | --- | --- | --- | --- |`,
    ...sorted.map(({ client, from, version, date, rows }) => {
      const marks = Array.from(scenarios, (name) => {
        const row = rows.find(({ trial }) => trial === name);
        return row ? markOf(row) : "✗";
      });
      const hosted = rows.find(({ trial }) => trial === "hosted");
      const sessions = rows.filter(({ trial }) => trial.startsWith("session over "));
      const tried = new Set(sessions.map(({ trial }) => trial));
      const failed = new Set(sessions.filter(({ ok }) => ok !== true).map(({ trial }) => trial));
      const done = tried.size === 0 ? "" : `${tried.size - failed.size} of ${tried.size}`;
      const upstreams = rows.filter(({ trial }) => trial.startsWith("over an upstream"));
      const local = rows.find(({ trial }) => trial === "over a local model");
      const over = upstreams.length === 0 ? "" : `${upstreams.filter(({ ok }) => ok).length} of ${upstreams.length}`;
      const cells = [...marks, hosted ? markOf(hosted) : "", done, over, local ? markOf(local) : ""];
      return `| ${client} (\`${from}\`) | ${version} | ${date} | ${cells.join(" | ")} |`;
    }),
    "",
    ...(notes.length === 0 ? [] : [...notes, ""]),
  ];
}

const markOf = ({ ok }: Row): string => (ok === null ? "–" : ok ? "✓" : "✗");

function lineOf(row: Row): string {
  return `| ${cell(row.trial)} | ${markOf(row)} | ${cell(row.detail)} |`;
}

const anchorOf = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^a-z0-9 -]/g, "")
    .replaceAll(" ", "-");
const cell = (text: string): string => text.replaceAll("|", "\\|");
