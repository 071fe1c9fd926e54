import { request as httpRequest } from "undici";
import { judgeDisconnect, judgeSideBySide, judgeStreamsApart, type LiveVerdict } from "../rules/group/live.ts";
import { send, type Target } from "./send.ts";
import type { Probe } from "./probe.ts";

const words = ["amber", "cobalt", "ivory", "scarlet"];

/** Several streams at once, each asked for a word of its own. */
export async function streamsSideBySide(target: Target, signal?: AbortSignal): Promise<LiveVerdict> {
  const results = await Promise.all(words.map((word) => send(repeatProbe(word), target, signal)));
  const streams = results.flatMap(({ exchange }, i) =>
    exchange?.response.status === 200 ? [{ word: words[i] ?? "", exchange }] : [],
  );
  return judgeStreamsApart(streams);
}

/** A long stream, and a second one that begins while it runs. */
export async function secondStream(target: Target, signal?: AbortSignal): Promise<LiveVerdict> {
  const first = await openStream(target, longBody(target.model), signal);
  if (!first) return { findings: [], shown: [], reason: "no stream could be opened" };
  try {
    const second = await openStream(target, longBody(target.model), signal);
    if (!second) return { findings: [], shown: [], reason: "no second stream could be opened" };
    second.leave();
    return judgeSideBySide({ ended: first.ended(), milliseconds: first.milliseconds() });
  } finally {
    first.leave();
  }
}

/** Clients that begin a long answer and leave. */
const clients = 8;

/** Abandons several long streams, then requests something short. */
export async function leaveAndAsk(target: Target, signal?: AbortSignal): Promise<LiveVerdict> {
  const short = shortProbe();
  const alone = await send(short, target, signal);
  const whole = await send({ ...short, body: longBody }, target, signal);
  if (!alone.exchange || !whole.exchange) return { findings: [], shown: [], reason: "no answer to compare with" };
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
