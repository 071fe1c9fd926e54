import { request as httpRequest } from "undici";
import type { Finding } from "../rules/rule.ts";
import { streamView } from "../rules/view.ts";
import { send, type Target } from "./send.ts";
import type { Probe } from "./probe.ts";

/** What a live probe found, and which of its rules it could show. */
export interface LiveResult {
  readonly findings: readonly Finding[];
  readonly shown: readonly string[];
  /** Why a rule could not be shown. */
  readonly reason?: string;
}

/** An answer that took less may have ended before a busy machine could open a second one beside it. */
const shortestOverlap = 2000;

const words = ["amber", "cobalt", "ivory", "scarlet"];

/** Several streams at once, each asked for a word of its own. */
export async function streamsSideBySide(target: Target, signal?: AbortSignal): Promise<LiveResult> {
  const results = await Promise.all(words.map((word) => send(repeatProbe(word), target, signal)));
  const findings: Finding[] = [];
  const ids = new Set<unknown>();
  let answers = 0;
  for (const [i, { exchange }] of results.entries()) {
    if (!exchange || exchange.response.status !== 200) continue;
    answers++;
    const view = streamView(exchange);
    const id = view.chunks[0]?.value.id;
    const text = [...view.choices.values()]
      .flat()
      .map(({ delta }) => (typeof delta.content === "string" ? delta.content : ""))
      .join("");
    const foreign = words.find((word, j) => j !== i && text.includes(word));
    if (ids.has(id)) findings.push(offence("live/streams-apart", `two streams with the id ${String(id)}`));
    else if (foreign !== undefined)
      findings.push(offence("live/streams-apart", `the word "${foreign}" in the answer to another request`));
    ids.add(id);
  }
  if (answers < 2) return { findings: [], shown: [], reason: "fewer than two streams were answered" };
  return { findings, shown: ["live/streams-apart"] };
}

/** A long stream, and a second one that begins while it runs. */
export async function secondStream(target: Target, signal?: AbortSignal): Promise<LiveResult> {
  const first = await openStream(target, longBody(target.model), signal);
  if (!first) return { findings: [], shown: [], reason: "no stream could be opened" };
  try {
    const second = await openStream(target, longBody(target.model), signal);
    if (!second) return { findings: [], shown: [], reason: "no second stream could be opened" };
    second.leave();
    // The first has ended before the second began: either one waits for the other, or the answer was too short to tell.
    if (!first.ended()) return { findings: [], shown: ["live/side-by-side"] };
    if (first.milliseconds() < shortestOverlap)
      return { findings: [], shown: [], reason: "the answers are made too fast to overlap" };
    return {
      findings: [offence("live/side-by-side", "the second stream began when the first had ended")],
      shown: ["live/side-by-side"],
    };
  } finally {
    first.leave();
  }
}

/** Leaves several long streams behind, then asks for something short. */
export async function leaveAndAsk(target: Target, signal?: AbortSignal): Promise<LiveResult> {
  const short = shortProbe();
  const alone = await send(short, target, signal);
  const whole = await send({ ...short, body: longBody }, target, signal);
  if (!alone.exchange || !whole.exchange) return { findings: [], shown: [], reason: "no answer to compare with" };
  // Were the answers that were left behind still being made, the short one would wait for a good part of them.
  const long = whole.milliseconds;
  if (long < 10 * alone.milliseconds || long < 3000)
    return { findings: [], shown: [], reason: "the server is too fast to tell" };
  const streams = await Promise.all(
    Array.from({ length: 8 }, () => openStream(target, longBody(target.model), signal)),
  );
  for (const stream of streams) stream?.leave();
  const after = await send(short, target, signal);
  const slow = after.milliseconds > alone.milliseconds * 4 + 500;
  const found = `${seconds(after.milliseconds)} for a short answer after 8 clients had left, ${seconds(alone.milliseconds)} before`;
  return { findings: slow ? [offence("live/disconnect", found)] : [], shown: ["live/disconnect"] };
}

interface OpenStream {
  ended(): boolean;
  /** From the request to the end of the answer, or to now. */
  milliseconds(): number;
  leave(): void;
}

/** Opens a stream and resolves with its first bytes; undefined when it does not come to that. */
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

function offence(rule: string, found: string): Finding {
  return { rule, start: 0, end: 0, found };
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}
