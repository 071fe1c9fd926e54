import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pc from "picocolors";
import {
  type AnswerPart,
  answerOf,
  type Api,
  apis,
  type Json,
  roots,
  type ScriptedAnswer,
} from "../../judge/between/facts.ts";
import {
  baselineOf,
  type BetweenReport,
  htmlBetween,
  jsonBetween,
  junitBetween,
  newCounts,
  prettyBetween,
} from "../../judge/between/report.ts";
import { usageOf } from "../../judge/between/prompt-cache.ts";
import type { CaptureFile } from "../../judge/between/recorded-facts.ts";
import { runBetween } from "../../judge/between/run-between.ts";
import { vendorServer } from "../../judge/between/vendor.ts";
import { readPriceFile } from "../app/configured-files.ts";
import { withScheme } from "../config/target.ts";
import { checkAction } from "./check-action.ts";
import { listenUntilSignal } from "./listen-until-signal.ts";

export interface BetweenFlags {
  readonly client: string;
  readonly vendor: string;
  readonly port: string;
  readonly host: string;
  readonly model: string;
  readonly vendorModel?: readonly string[];
  readonly key?: string;
  readonly only?: readonly string[];
  readonly quick?: true;
  readonly seeds?: readonly string[];
  readonly confirm?: string;
  readonly sessions?: string;
  readonly relay?: true;
  readonly format: string;
  readonly output?: string;
  readonly baseline?: string;
  readonly timeout: string;
  readonly concurrency: string;
  readonly prices: string;
  readonly header?: readonly string[];
  readonly body?: string;
}

const reporters: Readonly<Record<string, (report: BetweenReport) => string>> = {
  pretty: prettyBetween,
  json: jsonBetween,
  junit: junitBetween,
  html: htmlBetween,
};

function headerIn(text: string): readonly [name: string, value: string] {
  const at = text.indexOf(":");
  if (at > 0) return [text.slice(0, at).trim().toLowerCase(), text.slice(at + 1).trim()];
  throw new Error(`--header must be a name and a value, such as "x-provider: openai", not ${text}.`);
}

function objectIn(text: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Json;
  } catch {
    // It is refused below.
  }
  throw new Error(`--body must be a JSON object, such as '{"max_tokens": 1000}', not ${text}.`);
}

/** Runs `truewire between`. Exit code 0: no new errors; 1: new errors; 2: it could not run. */
export async function betweenAction(target: string, flags: BetweenFlags): Promise<number> {
  const reporter = Object.hasOwn(reporters, flags.format) ? reporters[flags.format] : undefined;
  if (!reporter) return cannot(`--format must be one of ${Object.keys(reporters).join(", ")}, not ${flags.format}.`);
  const url = withScheme(target);
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    return cannot(`Give the gateway's base URL, such as http://127.0.0.1:4000, not ${target}.`);
  if (flags.relay) return relay(url, flags);
  try {
    const known = flags.baseline === undefined ? new Set<string>() : await baselineIn(flags.baseline);
    const prices = await pricesIn(flags);
    const tty = process.stderr.isTTY;
    const run = await runBetween({
      url,
      client: apiOf("--client", flags.client),
      vendor: apiOf("--vendor", flags.vendor),
      vendorPort: positive("--port", flags.port),
      vendorHost: flags.host,
      model: flags.model,
      vendorModels: flags.vendorModel ?? [flags.model],
      key: flags.key,
      timeoutMs: positive("--timeout", flags.timeout) * 1000,
      concurrency: positive("--concurrency", flags.concurrency),
      prices,
      quick: flags.quick === true,
      headers: Object.fromEntries((flags.header ?? []).map(headerIn)),
      ...(flags.body !== undefined && { members: objectIn(flags.body) }),
      ...(flags.only && { only: flags.only }),
      ...(flags.seeds && { seeds: [...new Set(flags.seeds.map((seed) => wholeNumber("--seeds", seed)))] }),
      ...(flags.confirm !== undefined && { confirm: wholeNumber("--confirm", flags.confirm) }),
      ...(flags.sessions !== undefined && { sessions: await capturesIn(flags.sessions) }),
      onProgress: (done, all, { title }) => tty && process.stderr.write(`\r\x1b[K${pc.dim(`${done}/${all} ${title}`)}`),
    });
    if (tty) process.stderr.write("\r\x1b[K");
    if (run.results.every(({ findings }) => findings.some(({ kind }) => kind === "not-sent")))
      return cannot(
        `No request has reached the vendor. Configure the gateway so that the model ${flags.model} is one of ${flags.vendor} at http://${flags.host}:${flags.port}${run.vendor === "messages" ? "" : roots[run.vendor]}, with any key. The first request: ${run.findings[0]?.message ?? ""}`,
      );
    const report: BetweenReport = { ...run, url, known };
    const written = reporter(report);
    if (flags.output === undefined) process.stdout.write(written);
    else await writeFile(flags.output, written);
    return newCounts(report).error > 0 ? 1 : 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE")
      return cannot(`Port ${flags.port} is in use. Choose another with --port, and configure the gateway for it.`);
    return cannot(error instanceof Error ? error.message : String(error));
  }
}

/** Dollars for a million tokens: two numbers, or the entry of the vendor's model in a price list. */
async function pricesIn({ prices, vendorModel, model }: BetweenFlags): Promise<{ input: number; cached: number }> {
  const name = vendorModel?.[0] ?? model;
  const entry = prices.endsWith(".json") ? (await readPriceFile(prices)).get(name) : undefined;
  if (!entry && prices.endsWith(".json")) throw new Error(`--prices: ${prices} has no price of ${name}.`);
  if (entry) return { input: entry.input, cached: entry.cachedInput ?? entry.input };
  const [input = 0, cached = 0] = prices.split(",").map((price) => positive("--prices", price));
  return { input, cached };
}

/** A gateway whose vendor is not ours: what its answers show alone. */
async function relay(url: string, { client, key, model, format, output }: BetweenFlags): Promise<number> {
  process.stderr.write(
    "With --relay only the answers are judged: their form, ids, order, and the arithmetic of usage. What becomes of requests, and whether the " +
      "vendor's cache is used, cannot be seen without a vendor of our own.\n",
  );
  return checkAction(url.endsWith("/v1") ? url : `${url}/v1`, {
    only: client,
    profile: "exact",
    format,
    ...(model !== "between" && { model }),
    ...(key !== undefined && { key }),
    ...(output !== undefined && { output }),
  });
}

/** The captures of a file, or of a folder. */
async function capturesIn(path: string): Promise<CaptureFile[]> {
  const isFolder = (await stat(path)).isDirectory();
  const names = isFolder ? (await readdir(path)).filter((name) => /\.(?:jsonl|har)$/.test(name)).toSorted() : [path];
  const read = async (name: string): Promise<CaptureFile> => ({
    name,
    text: await readFile(isFolder ? join(path, name) : name, "utf8"),
  });
  return Promise.all(names.map(read));
}

async function baselineIn(file: string): Promise<ReadonlySet<string>> {
  try {
    return baselineOf(await readFile(file, "utf8"));
  } catch (cause) {
    throw new Error(`${file}: ${(cause as Error).message}.`, { cause });
  }
}

export interface VendorFlags {
  readonly api: string;
  readonly port: string;
  readonly host: string;
  readonly model: readonly string[];
  readonly script?: string;
}

/** An answer in the file of `--script`. */
interface ScriptLine extends Omit<ScriptedAnswer, "batches" | "failure"> {
  readonly parts?: readonly AnswerPart[];
  readonly failure?: { readonly status: number; readonly headers?: Record<string, string>; readonly body?: Json };
}

/** Runs `truewire vendor` until a signal ends it. Throws an error of one sentence if it cannot start. */
export async function vendorAction(flags: VendorFlags): Promise<void> {
  const api = apiOf("--api", flags.api);
  const script = flags.script === undefined ? [] : await scriptIn(flags.script);
  let count = 0;
  const server = vendorServer({
    apis: [api],
    models: flags.model,
    onRequest({ path, refusal, request }) {
      const form = request?.stream === true ? "stream" : "whole";
      console.error(`${path}: ${refusal === undefined ? `accepted, ${form}` : `refused: ${refusal.message}`}`);
    },
    answer(_, charge) {
      const {
        parts = [{ text: "A short answer." }],
        failure,
        ...line
      } = script[count++ % Math.max(1, script.length)] ?? {};
      const { body: error = {}, ...head } = failure ?? { status: 500 };
      const failed = failure && { failure: () => ({ ...head, body: error }) };
      return { ...line, ...failed, batches: answerOf(parts, { usage: usageOf(charge, 7) }) };
    },
  });
  const here = await listenUntilSignal(server, flags);
  const base = `${variables[api]}=${here}${api === "messages" || api === "gemini" ? "" : roots[api]}`;
  console.log(`${here}${roots[api]} answers as the vendor of ${api} does (${base}). Ctrl+C ends it.`);
}

/** By which the vendors' own clients are given another address. */
const variables: Readonly<Record<Api, string>> = {
  chat: "OPENAI_BASE_URL",
  responses: "OPENAI_BASE_URL",
  messages: "ANTHROPIC_BASE_URL",
  ollama: "OLLAMA_HOST",
  gemini: "GOOGLE_GEMINI_BASE_URL",
};

async function scriptIn(file: string): Promise<readonly ScriptLine[]> {
  const example =
    '[{ "parts": [{ "text": "Hello" }] }, { "failure": { "status": 429, "body": { "error": { "message": "Slow down" } } } }]';
  try {
    const lines: unknown = JSON.parse(await readFile(file, "utf8"));
    if (Array.isArray(lines) && lines.every((line) => typeof line === "object" && line !== null))
      return lines as ScriptLine[];
  } catch (cause) {
    throw new Error(`${file}: ${(cause as Error).message}; expected a list of answers, such as ${example}`, { cause });
  }
  throw new Error(`${file}: expected a list of answers, such as ${example}`);
}

const vendors: Readonly<Record<string, Api>> = { openai: "chat", anthropic: "messages" };

function apiOf(option: string, name: string): Api {
  const api = apis.find((one) => one === name) ?? (Object.hasOwn(vendors, name) ? vendors[name] : undefined);
  if (api) return api;
  throw new Error(
    `${option} must be one of ${apis.join(", ")} (or openai for chat, anthropic for messages), not ${name}.`,
  );
}

function wholeNumber(option: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new Error(`${option} must be a whole number such as 3, not ${text}.`);
}

function positive(option: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`${option} must be a number above 0, not ${text}.`);
  return value;
}

function cannot(message: string): number {
  process.stderr.write(`truewire: ${message}\n`);
  return 2;
}
