import { request as httpRequest } from "undici";
import { apiOfEndpoint } from "../rules/exchange.ts";
import type { GroupVerdict } from "../rules/group/group-rule.ts";
import { judgeSame } from "../rules/group/same.ts";
import type { ProfileName } from "../rules/profile/profile-rule.ts";
import { isObject } from "../../../wire/core/json.ts";
import { RefusedSettings } from "./refused-settings.ts";
import { requestHeaders } from "./probe.ts";
import type { Probe, ProbeResult } from "./probe.ts";
import {
  backgroundResponse,
  compactedResponse,
  responseConversation,
  storedResponse,
  unstoredResponse,
  responseSocket,
} from "./response-scenarios.ts";
import { diagnosedMessage, diagnosedResponse } from "./diagnosis-scenarios.ts";
import { type Judged, judgedResult, judgedTogether } from "./judged.ts";
import { liveScenarios } from "./live.ts";
import { responseLanes } from "./response-lanes.ts";
import { type Scenario, ScenarioSteps } from "./scenario.ts";
import { geminiProbes } from "./gemini-probes.ts";
import { messagesProbes } from "./messages-probes.ts";
import { ollamaProbes } from "./ollama-probes.ts";
import { probes as openaiProbes, refusedFeatures } from "./probes.ts";
import { type ProbeTarget, send } from "./send.ts";

export interface CheckOptions extends Omit<ProbeTarget, "model" | "refused"> {
  /** Default: the first that the server lists. */
  readonly model?: string;
  /** Only the probes of these APIs (`chat`, `models`), and those whose id begins so (`text`, `wrong/n`); default: all. */
  readonly only?: readonly string[];
  /** The form that every answer must have; default: any legal one. */
  readonly profile?: ProfileName;
  /** Number of probes that run in parallel. */
  readonly concurrency: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: CheckProgress) => void;
}

/** How far a check is. */
export interface CheckProgress {
  readonly done: number;
  readonly all: number;
  /** What was asked last. */
  readonly about: string;
  /** What it has shown. */
  readonly judged: readonly Judged[];
}

export interface CheckRun {
  readonly url: string;
  readonly model: string;
  readonly judged: readonly Judged[];
  /** What was asked in another way than usual; each a sentence without its full stop. */
  readonly remarks: readonly string[];
}

/** The server cannot be checked: it does not answer, or rejects the key. `message` is one sentence for the user of the command. */
export class CheckError extends Error {
  override readonly name = "CheckError";
  /** The message without the options of the command that it recommends. */
  readonly problem: string;

  constructor(message: string, { problem = message, ...options }: ErrorOptions & { readonly problem?: string } = {}) {
    super(message, options);
    this.problem = problem;
  }
}

const probes: readonly Probe[] = [...openaiProbes, ...messagesProbes, ...ollamaProbes, ...geminiProbes];

/** The words of `--only` that are an API's. */
const apis = [...new Set(probes.flatMap(({ endpoint }) => apiOfEndpoint[endpoint] ?? []))];

const scenarios: readonly Scenario[] = [
  storedResponse,
  unstoredResponse,
  backgroundResponse,
  compactedResponse,
  responseConversation,
  responseSocket,
  responseLanes,
  diagnosedMessage,
  diagnosedResponse,
  ...liveScenarios,
];

/** Sends every probe, with bounded time and concurrency, and judges what comes back. Throws `CheckError`. */
export async function runCheck(options: CheckOptions): Promise<CheckRun> {
  const url = options.url.replace(/\/+$/, "");
  const model = options.model ?? (await firstModel(url, options));
  const refused = new RefusedSettings();
  const target: ProbeTarget = { ...options, url, model, refused };
  const { only } = options;
  // A server without them is legal, unless `--only` asks for them.
  const absent = only === undefined ? await absentApis(target) : undefined;
  const wanted = (id: string, api: string | undefined) =>
    only === undefined
      ? // Ollama's API and Gemini's are next to the one under check.
        api !== "ollama" && api !== "gemini" && absent?.has(api) !== true
      : only.some((word) => (apis.includes(word) ? api === word : id.startsWith(word)));
  const chosen = probes.filter(
    ({ id, endpoint, profile }) =>
      (profile === undefined || profile === options.profile) && wanted(id, apiOfEndpoint[endpoint]),
  );
  const twins = probes.flatMap((plain) => {
    const api = apiOfEndpoint[plain.endpoint];
    const streamed = wanted(`same/${plain.id}`, api) || wanted(plain.id, api) ? twinOf(plain) : undefined;
    return streamed ? [{ plain, streamed }] : [];
  });
  const groups = scenarios.filter(({ id, api }) => wanted(id, api));
  const all = chosen.length + twins.length + groups.length;
  if (all === 0) {
    throw new CheckError(
      `There is no probe for --only ${only?.join(" ")}. It takes APIs (${apis.join(", ")}) and how ids begin (text, tools, wrong, live).`,
    );
  }
  let done = 0;
  const report = (about: string, ...judged: readonly Judged[]): void => {
    options.onProgress?.({ done: ++done, all, about, judged });
  };
  const judged = await pooled(chosen, options.concurrency, async (probe) => {
    const one = judgedResult(await send(probe, target, options.signal), options.profile);
    report(probe.about, one);
    return one;
  });
  for (const { plain, streamed } of twins) {
    const one = await judgeTwin(plain, streamed, target, options.signal);
    judged.push(one);
    report(one.about, one);
  }
  for (const scenario of groups) {
    const steps = new ScenarioSteps(target, options.profile, options.signal);
    const verdicts = await scenario.run(steps);
    const found = [...steps.judged, judgedTogether(scenario.id, scenario.about, verdicts)];
    judged.push(...found);
    report(scenario.about, ...found);
  }
  if (judged.every(({ result }) => result !== undefined && result.exchange === undefined)) {
    throw new CheckError(`${url} does not answer: ${judged[0]?.result?.failure ?? "no answer"}.`);
  }
  return { url, model, judged, remarks: [...refused.remarks(), ...refusedFeatures(judged)] };
}

/**
 * Probes with a streamed twin (`text` and `text/stream`) are sent again, one request at a time: batches of several requests round
 * differently and can change a word. So does another place in a server's cache, and requests take places in turn. A server is accused
 * only where each of its streamed answers differs from all whole ones, asked for in an order in which both get each of two to four places.
 */
async function judgeTwin(plain: Probe, streamed: Probe, target: ProbeTarget, signal?: AbortSignal): Promise<Judged> {
  const ask = (probe: Probe): Promise<ProbeResult> => send(probe, target, signal);
  const [first, second, third] = [await ask(plain), await ask(streamed), await ask(plain)];
  const judged = { id: `same/${plain.id}`, about: `${plain.about}, streamed and not`, result: second };
  const verdict = sameOf(first, second, third);
  if (verdict.findings.length === 0) return { ...judged, ...verdict };
  const [plains, streams] = [[third], [second]];
  for (const probe of [streamed, plain, plain, streamed, streamed, plain])
    (probe === plain ? plains : streams).push(await ask(probe));
  const verdicts = streams.flatMap((stream) => plains.map((again) => sameOf(first, stream, again)));
  return { ...judged, ...(verdicts.find(({ findings }) => findings.length === 0) ?? verdict) };
}

function sameOf(plain: ProbeResult, streamed: ProbeResult, again: ProbeResult): GroupVerdict {
  if (!plain.exchange || !streamed.exchange || !again.exchange) return { findings: [], shown: [] };
  return judgeSame(plain.exchange, again.exchange, streamed.exchange);
}

function twinOf(probe: Probe): Probe | undefined {
  if (probe.expects !== "answer" || !["chat", "responses", "messages"].includes(probe.endpoint)) return undefined;
  return probes.find(({ id }) => id === `${probe.id}/stream`);
}

async function firstModel(url: string, options: CheckOptions): Promise<string> {
  const vendor = onlyVendor(options.only);
  const headers = requestHeaders({ endpoint: vendor.models }, options.key);
  let status: number;
  let text: string;
  try {
    const response = await httpRequest(new URL(`${url}${vendor.path}`), {
      headers,
      signal: AbortSignal.timeout(options.timeout),
    });
    status = response.statusCode;
    text = await response.body.text();
  } catch (cause) {
    throw new CheckError(`${url} does not answer: ${cause instanceof Error ? cause.message : String(cause)}.`, {
      cause,
    });
  }
  if (status === 401 || status === 403)
    throw new CheckError(`${url} asks for a key: pass it with --key or in ${vendor.variable}.`, {
      problem: `${url} asks for a key, or for another one (status ${status}).`,
    });
  let id: unknown;
  try {
    id = vendor.first(JSON.parse(text));
  } catch {
    id = undefined;
  }
  if (typeof id !== "string") {
    const hint = status === 404 && !/\/v\d+$/.test(url) ? ` (or is its base URL ${url}/v1?)` : "";
    throw new CheckError(
      `${url}${vendor.path} did not return a model list (status ${status}): name a model with --model${hint}.`,
      { problem: `${url}${vendor.path} did not return a model list (status ${status}): name a model${hint}.` },
    );
  }
  return id;
}

/** How a server lists its models, and where its key is. */
interface Vendor {
  readonly models: Probe["endpoint"];
  readonly path: string;
  /** The environment variable with the key. */
  readonly variable: string;
  /** The first model of the list that generates text. */
  first(list: unknown): unknown;
}

const openai: Vendor = {
  models: "models",
  path: "/models",
  variable: "OPENAI_API_KEY",
  first: (list) => itemsOf(list, "data")[0]?.["id"],
};
const vendors: Readonly<Record<string, Vendor>> = {
  messages: { ...openai, models: "anthropic-models", variable: "ANTHROPIC_API_KEY" },
  gemini: {
    models: "gemini-models",
    path: "/../v1beta/models",
    variable: "GEMINI_API_KEY",
    first: (list) => {
      const generating = itemsOf(list, "models").find(
        ({ supportedGenerationMethods: methods }) => Array.isArray(methods) && methods.includes("generateContent"),
      );
      return typeof generating?.["name"] === "string" ? generating["name"].replace(/^models\//, "") : undefined;
    },
  },
};

function itemsOf(list: unknown, member: string): readonly Readonly<Record<string, unknown>>[] {
  const items: unknown = isObject(list) ? list[member] : undefined;
  return Array.isArray(items) ? items.filter(isObject) : [];
}

/** The vendor whose API alone is to be asked: the server may have no other. OpenAI if there are several. */
export function onlyVendor(only: readonly string[] | undefined): Vendor {
  const api = Object.keys(vendors).find((name) => only?.every((word) => word === name || word.startsWith(`${name}/`)));
  return (api !== undefined && vendors[api]) || openai;
}

/** Maps in order, with at most `limit` running in parallel. */
async function pooled<T, R>(items: readonly T[], limit: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    for (let i = next++; i < items.length; i = next++) results[i] = await work(items[i] as T);
  };
  await Promise.all(Array.from({ length: Math.max(1, limit) }, worker));
  return results;
}

/** APIs that a server need not have, and how it answers without them. Anthropic's API rejects the key of another vendor. */
const optional: readonly { readonly endpoint: "responses" | "messages"; readonly lacking: readonly number[] }[] = [
  { endpoint: "responses", lacking: [404, 405, 501] },
  { endpoint: "messages", lacking: [401, 403, 404, 405, 501] },
];

/** The name of a model that no server has. */
const noModel = "which-api-is-this";

/**
 * Whole requests by which a server shows whether it has an API. Servers refuse them for their model; those that do not look at it answer with
 * one token. Not an empty body, which no client sends: servers that were written for tests crash at it.
 */
const questions = {
  responses: { model: noModel, input: "Hi", max_output_tokens: 16 },
  messages: { model: noModel, max_tokens: 1, messages: [{ role: "user", content: "Hi" }] },
};

/** Those of them that a server has not. Each is asked for a model that no server has; its name in a 404 shows that the path is there. */
export async function absentApis(target: ProbeTarget): Promise<ReadonlySet<string | undefined>> {
  const asked = await Promise.all(
    optional.map(async ({ endpoint, lacking }) => {
      const answer = await answerTo(endpoint, target);
      return !answer || (lacking.includes(answer.status) && !answer.text.includes(noModel)) ? [endpoint] : [];
    }),
  );
  return new Set(asked.flat());
}

/** undefined: there is no answer. */
async function answerTo(
  endpoint: "responses" | "messages",
  { url, key, timeout }: ProbeTarget,
): Promise<{ readonly status: number; readonly text: string } | undefined> {
  try {
    const { statusCode, body } = await httpRequest(`${url}/${endpoint}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...requestHeaders({ endpoint }, key) },
      body: JSON.stringify(questions[endpoint]),
      signal: AbortSignal.timeout(timeout),
    });
    return { status: statusCode, text: await startOf(body) };
  } catch {
    return undefined;
  }
}

/** The first characters of an answer, in which a refusal names the model. */
async function startOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > 4096) break;
  }
  return text;
}
