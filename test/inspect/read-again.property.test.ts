import { hasRecordings, readRecordings } from "../support/recordings.ts";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { openUpstreamEngine } from "../../src/engines/upstream/upstream-engine.ts";
import type { OpenTransport, Transport } from "../../src/engines/upstream/transport.ts";
import type { InspectedRequest } from "../../src/judge/inspect/inspected-request.ts";
import { WatchedRequest } from "../../src/serve/server/inspect/watched-request.ts";
import { Mask } from "../../src/serve/server/mask.ts";
import { RequestRecord } from "../../src/serve/server/request-record.ts";
import { captureOf, doubles } from "../upstream/double-server.ts";

// Inspect keeps no events of an upstream's answer: it reads them again, from the text that it kept. They must be those that the client's
// answer was written from.

const isHere = hasRecordings("of streams to read again");

type Api = "chat" | "messages" | "responses";
/** How the upstream's answer ends: with the end of its body, a lost connection, silence, or the client that leaves. */
type Ending = "end" | "error" | "silence" | "left";

interface Answer {
  readonly api: Api;
  /** The chunks of the body, and how many of them arrive in one turn. */
  readonly chunks: readonly Uint8Array[];
  readonly perTurn: number;
  readonly ending: Ending;
}

/** More than any of the streams needs. */
const maxBytes = 64 * 1024 * 1024;

const passed = { "content-type": "text/event-stream", "x-ratelimit-remaining-requests": "7" };

/** A transport whose server answers each request with the chunks. */
function scripted({ chunks, perTurn, ending }: Answer): OpenTransport {
  let next: NodeJS.Immediate | undefined;
  const transport: Transport = {
    sharesTimers: true,
    afterReads: (read) => void Promise.resolve().then(read),
    decoder() {
      const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
      return { write: (bytes) => decoder.decode(bytes, { stream: true }), end: () => decoder.decode() };
    },
    unpacker: () => null,
    request: () => Promise.reject(new Error("not asked")),
    pass: () => Promise.reject(new Error("not asked")),
    // The answer may be over before its chunks are, as after `[DONE]`: the rest must not arrive during another test.
    destroy() {
      clearImmediate(next);
      return Promise.resolve();
    },
    dispatch(_, handler) {
      let isAborted = false;
      const controller = {
        aborted: false,
        paused: false,
        reason: null,
        rawHeaders: null,
        rawTrailers: null,
        pause() {},
        resume() {},
        abort(reason: Error) {
          isAborted = true;
          handler.onResponseError?.(controller, reason);
        },
      };
      const turn = (from: number): void => {
        if (isAborted) return;
        if (from < chunks.length) {
          for (const chunk of chunks.slice(from, from + perTurn))
            handler.onResponseData?.(controller, Buffer.from(chunk));
          next = setImmediate(turn, from + perTurn);
        } else if (ending === "error") handler.onResponseError?.(controller, new Error("other side closed"));
        else if (ending === "end") handler.onResponseEnd?.(controller, {});
        else if (ending === "silence") vi.advanceTimersByTime(10 * 60_000);
      };
      handler.onRequestStart?.(controller, null);
      handler.onResponseStart?.(controller, 200, passed);
      next = setImmediate(turn, 0);
    },
  };
  return () => transport;
}

const request: GenerationRequest = {
  id: "req_1",
  model: "m",
  prompt: { kind: "chat", messages: [{ role: "user", content: [{ type: "text", text: "Hi" }] }], template: {} },
  sampling: {},
  limits: {},
  stream: true,
  wantsUsage: true,
  extra: {},
};

function newWatched(limit: number): WatchedRequest {
  return new WatchedRequest({
    id: "req_1",
    number: 1,
    method: "POST",
    path: "/v1/chat/completions",
    headers: [],
    facts: new RequestRecord(),
    mask: new Mask([]),
    limit,
    grow() {},
    changed() {},
  });
}

/** Generates as the server does. Returns the events that the client's answer was written from, and what Inspect shows. */
async function generated(answer: Answer, limit: number): Promise<[readonly GenerationEvent[], InspectedRequest]> {
  const engine = await openUpstreamEngine(
    { name: "up", urls: ["http://up.invalid/v1"], models: { m: "m" }, api: answer.api, retries: 0 },
    scripted(answer),
  );
  const inspection = newWatched(limit);
  const record = new RequestRecord(undefined, { inspection });
  const seen: GenerationEvent[] = [];
  // A client that leaves does so when all has arrived.
  let turns = Math.ceil(answer.chunks.length / answer.perTurn);
  const batches = engine.generate(request, record.answer)[Symbol.asyncIterator]();
  for (;;) {
    const isOver = answer.ending === "left" && turns-- <= 0;
    const step = isOver
      ? undefined
      : await Promise.race([
          batches.next(),
          ...(answer.ending === "left" ? [afterTurns(answer.chunks.length + 2)] : []),
        ]);
    if (step === undefined || step.done === true) break;
    inspection.events(step.value);
    seen.push(...step.value);
    if (step.value.at(-1)?.type === "end") break;
  }
  await batches.return?.();
  await engine.close(0);
  return [seen, inspection.shown()];
}

async function afterTurns(count: number): Promise<undefined> {
  for (let at = 0; at < count; at++) await new Promise((resolve) => setImmediate(resolve));
  return undefined;
}

function shownEvents({ events }: InspectedRequest): GenerationEvent[] {
  return events.chunks.flatMap(({ events }) => events);
}

/** `places`: in the bytes, each between 0 (the beginning) and 1 (the end). */
function cutAt(text: string, places: readonly number[]): Uint8Array[] {
  const bytes = new TextEncoder().encode(text);
  const cuts = [...places.map((place) => Math.round(place * bytes.length)), bytes.length].toSorted((a, b) => a - b);
  let from = 0;
  return cuts.map((to) => bytes.subarray(from, (from = to))).filter(({ length }) => length > 0);
}

interface Stream {
  readonly api: Api;
  readonly name: string;
  readonly body: string;
}

function recorded(api: Api): Stream[] {
  return readRecordings(`${api}-stream`)
    .map(({ name, body }) => ({ api, name, body }))
    .filter(({ body }) => body.length < 40_000);
}

const streams: readonly Stream[] = [
  ...doubles
    .filter(({ status, stream }) => status === 200 && stream.length > 0)
    .map((double): Stream => ({ api: "chat", name: double.id, body: captureOf(double) })),
  ...(isHere ? (["chat", "messages", "responses"] as const).flatMap(recorded) : []),
];

/** A part of a stream's body is left out or replaced, and the rest is cut into chunks. */
const mutation = fc.record({
  stream: fc.nat(streams.length - 1),
  places: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 40 }),
  perTurn: fc.integer({ min: 1, max: 4 }),
  ending: fc.constantFrom<Ending>("end", "error", "silence", "left"),
  from: fc.double({ min: 0, max: 1, noNaN: true }),
  share: fc.constantFrom(0, 0, 0.01, 0.1, 1),
  inserted: fc.constantFrom("", "data: {}\n\n", ": ping\n\n", "é😀\n\n", "data: [DONE]\n\n", '{"error":"x"}'),
});

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

describe("the events that Inspect reads again are those that the client's answer was written from", () => {
  test("each recorded stream, event by event", async () => {
    for (const { api, name, body } of streams) {
      const chunks = body.split(/(?<=\n\n)/).map((event) => new TextEncoder().encode(event));
      const [seen, shown] = await generated({ api, chunks, perTurn: 1, ending: "end" }, maxBytes);
      expect(shownEvents(shown), name).toEqual(seen);
      const kept = shown.asked[0]?.response.chunks.map(({ text }) => text).join("");
      // After an error nothing is read.
      expect(kept === body || (kept !== "" && body.startsWith(kept ?? "-")), name).toBe(true);
    }
  });

  test("mutated streams, in any chunks, however they end", async () => {
    await fc.assert(
      fc.asyncProperty(mutation, async ({ stream, places, perTurn, ending, from, share, inserted }) => {
        const { api, name, body } = streams[stream] as Stream;
        const start = Math.floor(from * body.length);
        const text = body.slice(0, start) + inserted + body.slice(start + Math.floor(share * body.length));
        const [seen, shown] = await generated({ api, chunks: cutAt(text, places), perTurn, ending }, maxBytes);
        const read = shownEvents(shown);
        // The rest had arrived, and the client left before it was sent.
        const isLeft = ending === "left" && seen.at(-1)?.type !== "end";
        expect(isLeft ? read.slice(0, seen.length) : read, name).toEqual(seen);
      }),
      { numRuns: 1000 },
    );
  });
});
