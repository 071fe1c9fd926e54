import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { bodyOf } from "../../judge/capture/captured-exchange.ts";
import type { CapturedExchange, CapturedResponse } from "../../judge/capture/captured-exchange.ts";
import { readCaptures } from "../../judge/capture/read-captures.ts";
import { outlineRequest, PromptHistory } from "../../wire/apis/prompt-history.ts";
import type { ComparedPrompt, ReportedCache } from "../../wire/apis/prompt-history.ts";
import { ports, sourcePorts } from "../../wire/apis/ports.ts";
import { readResponseBody } from "../../wire/apis/tolerant/read-response.ts";
import { describeCacheMiss } from "../../wire/core/cache-miss.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { isObject } from "../../wire/core/json.ts";
import { runSync } from "../../wire/core/steps.ts";

export interface CacheWhyOptions {
  /** US dollars for a million tokens of a prompt: not cached, and read from a cache. */
  readonly price?: string;
  readonly cachedPrice?: string;
  readonly json?: boolean;
}

/** A request whose prompt was processed again. */
interface ReportedMiss {
  /** `session.jsonl:3` */
  readonly from: string;
  readonly cause: string;
  readonly where?: string;
  readonly says: string;
  /** Whether the prompt does not begin as an earlier one; false: the source did not use its cache. */
  readonly brokenPrefix: boolean;
  /** Of the earlier prompt, processed again: as the source reports it, else an estimate. */
  readonly missedTokens: number;
  readonly isEstimate: boolean;
  readonly promptTokens?: number;
  readonly cachedTokens?: number;
  /** In US dollars. */
  readonly cost?: number;
}

/**
 * Says which requests of recordings did not begin as an earlier one. Returns the exit code: 1 if there is such a request. Throws an Error of
 * one sentence if nothing can be read.
 */
export async function cacheWhy(paths: readonly string[], options: CacheWhyOptions): Promise<number> {
  const extraCost = costOf(options);
  const exchanges = (await Promise.all(paths.map(readPath))).flat();
  const history = new PromptHistory();
  const misses: ReportedMiss[] = [];
  let requests = 0;
  for (const exchange of exchanges) {
    const compared = compareExchange(exchange, history);
    if (!compared) continue;
    requests++;
    const miss = missOf(exchange, compared);
    if (miss) misses.push(extraCost === null ? miss : { ...miss, cost: miss.missedTokens * extraCost });
  }
  if (requests === 0)
    throw new Error(`${paths.join(", ")}: no request with a conversation; expected recordings of truewire record`);
  const broken = misses.filter(({ brokenPrefix }) => brokenPrefix);
  console.log(options.json === true ? JSON.stringify({ requests, misses }, null, 2) : textOf(requests, misses));
  return broken.length > 0 ? 1 : 0;
}

/** What a token costs more if it is not read from a cache, in US dollars; null without prices. */
function costOf({ price, cachedPrice }: CacheWhyOptions): number | null {
  const number = (text: string, option: string): number => {
    const value = Number(text);
    if (text.trim() === "" || !(value >= 0)) throw new Error(`${option} must be a number of US dollars, not ${text}`);
    return value;
  };
  if (price === undefined) {
    if (cachedPrice !== undefined) throw new Error("--cached-price needs --price");
    return null;
  }
  return (number(price, "--price") - number(cachedPrice ?? "0", "--cached-price")) / 1e6;
}

/** The exchanges of a file, or of all files of a folder, in the order of their names. */
async function readPath(path: string): Promise<CapturedExchange[]> {
  const found = await stat(path).catch(() => undefined);
  if (!found) throw new Error(`${path}: there is no such file or folder; expected recordings of truewire record`);
  if (!found.isDirectory()) return readCaptures(await readFile(path, "utf8"), path);
  const names = (await readdir(path)).filter((name) => /\.(?:jsonl|har)$/.test(name)).toSorted();
  if (names.length === 0)
    throw new Error(`${path}: no file ends with .jsonl or .har; expected recordings of truewire record`);
  const files = await Promise.all(names.map((name) => readPath(join(path, name))));
  return files.flat();
}

interface ComparedExchange {
  readonly compared: ComparedPrompt;
  readonly reported: ReportedCache | undefined;
}

/** Undefined for what is no conversation, was refused, or continues a stored response, whose messages are not in the request. */
function compareExchange(
  { request, response }: CapturedExchange,
  history: PromptHistory,
): ComparedExchange | undefined {
  const port = ports.find(({ path }) => request.path.replace(/[?#].*$/s, "").endsWith(path));
  if (!port || request.method !== "POST" || response.status !== 200 || request.body === undefined) return undefined;
  const body = parsed(request.body);
  if (!isObject(body) || typeof body["previous_response_id"] === "string") return undefined;
  try {
    const { request: read } = runSync(port.readRequest(body, "", { forwards: true }));
    const outline = runSync(outlineRequest(read));
    if (!outline) return undefined;
    const compared = history.sent(read, outline, timeOf(response), "");
    return { compared, reported: usageOf(port.name, response) };
  } catch (error) {
    if (error instanceof FailureError) return undefined;
    throw error;
  }
}

function missOf({ from }: CapturedExchange, { compared, reported }: ComparedExchange): ReportedMiss | undefined {
  const { broken } = compared;
  const missed = reported && compared.missed(reported);
  if (broken) {
    const { cause, where, missedTokens } = broken;
    const found = {
      from,
      cause,
      ...(where !== undefined && { where }),
      says: describeCacheMiss(broken),
      brokenPrefix: true,
    };
    if (!reported) return { ...found, missedTokens, isEstimate: true };
    const again = Math.min(missedTokens, Math.max(0, reported.promptTokens - reported.cachedTokens));
    return { ...found, missedTokens: again, isEstimate: true, ...reported };
  }
  if (!missed || !reported) return undefined;
  const { cause, knownTokens = 0 } = missed;
  const missedTokens = Math.max(0, knownTokens - reported.cachedTokens);
  return {
    from,
    cause,
    says: describeCacheMiss(missed),
    brokenPrefix: false,
    missedTokens,
    isEstimate: false,
    ...reported,
  };
}

/** In milliseconds; 0 if the recording does not say when it was made. */
function timeOf({ headers }: CapturedResponse): number {
  const date = Date.parse(headers.find(([name]) => name.toLowerCase() === "date")?.[1] ?? "");
  return Number.isNaN(date) ? 0 : date;
}

/** Undefined if the source reports no cached tokens. */
function usageOf(api: string, response: CapturedResponse): ReportedCache | undefined {
  const source = sourcePorts[api as keyof typeof sourcePorts];
  if (!source) return undefined;
  const text = bodyOf(response);
  const reader = source.reader({ newCallId: () => "call" });
  const events = /^\s*\{/.test(text) ? readResponseBody(text, reader) : [...reader.push(text), ...reader.end()];
  const usage = events.findLast((event) => event.type === "usage")?.usage;
  const cachedTokens = usage?.promptDetails?.["cached_tokens"];
  return usage && typeof cachedTokens === "number" ? { promptTokens: usage.promptTokens, cachedTokens } : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function textOf(requests: number, misses: readonly ReportedMiss[]): string {
  const tokens = (count: number): string => count.toLocaleString("en-US");
  const lines = misses.map(({ from, says, missedTokens, isEstimate, promptTokens, cost }) => {
    const of = promptTokens === undefined ? "" : ` of ${tokens(promptTokens)}`;
    const price = cost === undefined ? "" : ` ($${cost.toFixed(4)})`;
    return `${from}  ${isEstimate ? "about " : ""}${tokens(missedTokens)}${of} prompt tokens again${price}\n  ${says}`;
  });
  const broken = misses.filter(({ brokenPrefix }) => brokenPrefix).length;
  const total = misses.reduce((sum, { missedTokens }) => sum + missedTokens, 0);
  const costs = misses.reduce((sum, { cost = 0 }) => sum + cost, 0);
  const price = misses.some(({ cost }) => cost !== undefined) ? `, $${costs.toFixed(4)}` : "";
  const summary =
    broken === 0
      ? `${requests} requests: every prompt begins as an earlier one, or is new.`
      : `${requests} requests: ${broken} ${broken === 1 ? "prompt does" : "prompts do"} not begin as the earlier one.`;
  const again = misses.length === 0 ? "" : ` About ${tokens(total)} tokens were processed again${price}.`;
  return [...lines, summary + again].join("\n");
}
