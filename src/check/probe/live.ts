import { request as httpRequest } from "undici";
import { type GroupVerdict, notShown } from "../rules/group/group-rule.ts";
import { judgeDisconnect, judgeSideBySide, judgeStreamsApart } from "../rules/group/live.ts";
import type { Scenario } from "./scenario.ts";
import { send, type Target } from "./send.ts";
import type { Probe } from "./probe.ts";

/** Scenarios of several requests at once. */
export const liveScenarios: readonly Scenario[] = [
  scenario("streams", "several streams at once", streamsSideBySide),
  scenario("second", "a second stream beside a long one", secondStream),
  scenario("leave", "clients that leave", leaveAndAsk),
];

function scenario(
  name: string,
  about: string,
  measured: (target: Target, signal?: AbortSignal) => Promise<GroupVerdict>,
): Scenario {
  return {
    id: `live/${name}`,
    about,
    api: "chat",
    run: async ({ target, signal }) => [await measured(target, signal)],
  };
}

const words = ["amber", "cobalt", "ivory", "scarlet"];

/** Several streams at once, each asked for a word of its own. */
async function streamsSideBySide(target: Target, signal?: AbortSignal): Promise<GroupVerdict> {
  const results = await Promise.all(words.map((word) => send(repeatProbe(word), target, signal)));
  const streams = results.flatMap(({ exchange }, i) =>
    exchange?.response.status === 200 ? [{ word: words[i] ?? "", exchange }] : [],
  );
  return judgeStreamsApart(streams);
}

/** A long stream, and a second one that begins while it runs. */
async function secondStream(target: Target, signal?: AbortSignal): Promise<GroupVerdict> {
  const first = await openStream(target, longBody(target.model), signal);
  if (!first) return notShown("no stream could be opened");
  try {
    const second = await openStream(target, longBody(target.model), signal);
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
async function leaveAndAsk(target: Target, signal?: AbortSignal): Promise<GroupVerdict> {
  const short = shortProbe();
  const alone = await send(short, target, signal);
  const whole = await send({ ...short, body: longBody }, target, signal);
  if (!alone.exchange || !whole.exchange) return notShown("no answer to compare with");
  const times = { alone: alone.milliseconds, long: whole.milliseconds, clients };
  // When the server is too fast to tell, skip the abandoned streams.
  const early = judgeDisconnect({ ...times, after: times.alone });
  if (early.reason !== undefined) return early;
  const streams = await Promise.all(
    Array.from({ length: clients }, () => openStream(target, longBody(target.model), signal)),
  );
  for (const stream of streams) stream?.leave();
  const after = await send(short, target, signal);
  return judgeDisconnect({ ...times, after: after.milliseconds });
}

interface OpenStream {
  ended(): boolean;
  /** From the request to the end of the answer, or to now. */
  milliseconds(): number;
  leave(): void;
}

/** Opens a stream and resolves with its first bytes; undefined when it could not be opened. */
async function openStream(
  target: Target,
  body: Record<string, unknown>,
  signal?: AbortSignal,
): Promise<OpenStream | undefined> {
  const started = performance.now();
  const gone = new AbortController();
  const limit = AbortSignal.timeout(target.timeout);
  try {
    const response = await httpRequest(`${target.url}/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(target.key !== undefined && { authorization: `Bearer ${target.key}` }),
      },
      body: JSON.stringify({ ...body, stream: true }),
      signal: AbortSignal.any([gone.signal, limit, ...(signal ? [signal] : [])]),
    });
    if (response.statusCode !== 200) {
      await response.body.dump();
      return undefined;
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

function repeatProbe(word: string): Probe {
  const messages = [{ role: "user", content: `Say the word ${word} three times.` }];
  return {
    ...shortProbe(),
    body: (model) => ({ model, messages, temperature: 0, max_tokens: 24, stream: true }),
  };
}

function shortProbe(): Probe {
  return {
    id: "live/short",
    about: "a short answer",
    endpoint: "chat",
    method: "POST",
    path: () => "/chat/completions",
    body: (model) => ({ model, messages: [{ role: "user", content: "Say hi." }], temperature: 0, max_tokens: 2 }),
    expects: "any",
  };
}

function longBody(model: string): Record<string, unknown> {
  return {
    model,
    messages: [{ role: "user", content: "Count from 1 to 500, one number a line." }],
    temperature: 0,
    max_tokens: 400,
  };
}
