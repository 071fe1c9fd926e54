import { type GroupVerdict, notShown } from "../rules/group/group-rule.ts";
import { judgeDisconnect, judgeSideBySide, judgeStreamsApart } from "../rules/group/live.ts";
import type { Probe } from "./probe.ts";
import { requestHeaders } from "./probe.ts";
import type { Scenario } from "./scenario.ts";
import { type ProbeTarget, send } from "./send.ts";
import { request as httpRequest } from "undici";

/** How an API is asked for an answer to one message. */
interface LiveApi {
  readonly endpoint: "chat" | "responses" | "messages";
  readonly path: string;
  /** What its ids begin with. */
  readonly prefix: string;
  /** The fewest tokens that an answer may be limited to. */
  readonly fewest: number;
  body(text: string, tokens: number): Record<string, unknown>;
}

const messages = (content: string) => [{ role: "user", content }];

const apis: readonly LiveApi[] = [
  {
    endpoint: "chat",
    path: "/chat/completions",
    prefix: "live",
    fewest: 2,
    body: (text, tokens) => ({ messages: messages(text), max_tokens: tokens }),
  },
  {
    endpoint: "responses",
    path: "/responses",
    prefix: "responses/live",
    fewest: 16,
    body: (text, tokens) => ({ input: text, max_output_tokens: tokens, store: false }),
  },
  {
    endpoint: "messages",
    path: "/messages",
    prefix: "messages/live",
    fewest: 2,
    body: (text, tokens) => ({ messages: messages(text), max_tokens: tokens }),
  },
];

type Measured = (api: LiveApi, target: ProbeTarget, signal?: AbortSignal) => Promise<GroupVerdict>;

const measured: readonly (readonly [name: string, about: string, run: Measured])[] = [
  ["streams", "several streams in parallel", streamsSideBySide],
  ["second", "a second stream next to a long one", secondStream],
  ["leave", "clients that leave", leaveAndAsk],
];

/** Scenarios of parallel requests, of every API that streams. */
export const liveScenarios: readonly Scenario[] = apis.flatMap((api) =>
  measured.map(([name, about, run]) => ({
    id: `${api.prefix}/${name}`,
    about: api.endpoint === "chat" ? about : `${api.endpoint === "responses" ? "Responses" : "Messages"}: ${about}`,
    api: api.endpoint,
    run: async ({ target, signal }) => [await run(api, target, signal)],
  })),
);

const words = ["amber", "cobalt", "ivory", "scarlet"];

/** Several streams in parallel, each with a word of its own. */
async function streamsSideBySide(api: LiveApi, target: ProbeTarget, signal?: AbortSignal): Promise<GroupVerdict> {
  const asked = words.map((word) => probeOf(api, `Say the word ${word} three times.`, 24, true));
  const results = await Promise.all(asked.map((probe) => send(probe, target, signal)));
  const streams = results.flatMap(({ exchange }, i) =>
    exchange?.response.status === 200 ? [{ word: words[i] ?? "", exchange }] : [],
  );
  return judgeStreamsApart(streams);
}

/** A long stream, and a second one that begins while it runs. */
async function secondStream(api: LiveApi, target: ProbeTarget, signal?: AbortSignal): Promise<GroupVerdict> {
  const long = longProbe(api, true);
  const first = await openStream(long, target, signal);
  if (!first) return notShown("no stream could be opened");
  try {
    const second = await openStream(long, target, signal);
    if (!second) return notShown("no second stream could be opened");
    second.leave();
    return judgeSideBySide({ ended: first.ended(), milliseconds: first.milliseconds() });
  } finally {
    first.leave();
  }
}

/** Clients that begin a long answer and leave. */
const clients = 8;

/** Abandons several long streams, then requests something short. */
async function leaveAndAsk(api: LiveApi, target: ProbeTarget, signal?: AbortSignal): Promise<GroupVerdict> {
  const short = probeOf(api, "Say hi.", api.fewest, false);
  const alone = await send(short, target, signal);
  const whole = await send(longProbe(api, false), target, signal);
  if (!alone.exchange || !whole.exchange) return notShown("no answer to compare with");
  const times = { alone: alone.milliseconds, long: whole.milliseconds, clients };
  // If the server is too fast to measure, skip the abandoned streams.
  const early = judgeDisconnect({ ...times, after: times.alone });
  if (early.reason !== undefined) return early;
  const streams = await Promise.all(
    Array.from({ length: clients }, () => openStream(longProbe(api, true), target, signal)),
  );
  for (const stream of streams) stream?.leave();
  const after = await send(short, target, signal);
  return judgeDisconnect({ ...times, after: after.milliseconds });
}

function longProbe(api: LiveApi, stream: boolean): Probe {
  return probeOf(api, "Count from 1 to 500, one number a line.", 400, stream);
}

function probeOf(api: LiveApi, text: string, tokens: number, stream: boolean): Probe {
  return {
    id: api.prefix,
    about: text,
    endpoint: api.endpoint,
    method: "POST",
    path: () => api.path,
    body: (model) => ({ model, ...api.body(text, tokens), temperature: 0, ...(stream && { stream }) }),
    expects: "any",
  };
}

export interface OpenStream {
  ended(): boolean;
  /** From the request to the end of the answer, or to now. */
  milliseconds(): number;
  leave(): void;
}

/** Opens the stream of a probe and resolves with its first bytes; undefined when it could not be opened. */
export async function openStream(
  probe: Probe,
  target: ProbeTarget,
  signal?: AbortSignal,
): Promise<OpenStream | undefined> {
  const { url, key, model, timeout, refused } = target;
  const body = refused.adapted(probe.endpoint, probe.body?.(model) ?? {});
  const started = performance.now();
  const gone = new AbortController();
  const limit = AbortSignal.timeout(timeout);
  try {
    const response = await httpRequest(url + probe.path(model), {
      method: "POST",
      headers: { "content-type": "application/json", ...requestHeaders(probe, key) },
      body: JSON.stringify(body),
      signal: AbortSignal.any([gone.signal, limit, ...(signal ? [signal] : [])]),
    });
    if (response.statusCode !== 200) {
      const answer = { status: response.statusCode, headers: null, body: await response.body.text(), complete: true };
      const request = { method: "POST", path: probe.path(model), body };
      const isLearned = refused.learn({ endpoint: probe.endpoint, request, response: answer });
      return isLearned ? await openStream(probe, target, signal) : undefined;
    }
    let end: number | undefined;
    const begun = new Promise<void>((resolve) => {
      response.body.on("data", () => resolve());
      response.body
        .on("end", () => {
          end = performance.now();
          resolve();
        })
        .on("error", () => resolve());
    });
    await begun;
    return {
      ended: () => end !== undefined,
      milliseconds: () => (end ?? performance.now()) - started,
      leave: () => gone.abort(),
    };
  } catch {
    return undefined;
  }
}
