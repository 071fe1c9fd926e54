import { describe, expect, test } from "vitest";
import { converseSource } from "../../src/wire/apis/messages/converse.ts";
import { EventStreamDecoder, eventStreamMessage, eventStreamOf } from "../../src/wire/apis/messages/event-stream.ts";
import { completionsSource } from "../../src/wire/apis/completions/port.ts";
import type { AnswerContext, Port, ReadRequest } from "../../src/wire/apis/port.ts";
import { ports, sourcePorts } from "../../src/wire/apis/ports.ts";
import { exact, lean } from "../../src/wire/apis/profile.ts";
import { repairCapture } from "../../src/judge/check/repair.ts";
import { judgeCapture } from "../../src/judge/check/check-capture.ts";
import { accumulate } from "../../src/wire/core/accumulate.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { runSync } from "../../src/wire/core/steps.ts";
import { OutputReader } from "../../src/engines/program/output-reader.ts";
import { plainText } from "../../src/text/formats/format.ts";
import { readResponseBody } from "../../src/wire/apis/tolerant/read-response.ts";
import { validBodies, validForms } from "../support/hostile-bodies.ts";
import { growthOf, maxGrowth } from "../support/growth.ts";
import { dailyPart } from "../support/runs.ts";
import { eventShapes, frameShapes, wireShapes, type Shape } from "./shapes.ts";

/*
 * The CPU time of each reader and writer grows linearly with each hostile shape. Readers and writers come from the lists that the server
 * uses, so a new API is measured without a change here.
 *
 * Several took quadratic time, and no test had an answer of more than a few events: a regular expression over all arguments so far, all
 * members copied for each `message_delta`, the log probabilities that wait for a text copied for each token.
 */

const context: AnswerContext = {
  profile: lean,
  created: 1_786_000_000,
  model: "m",
  settings: { passExtra: true },
  random: () => 0.5,
};
const header = (name: string): string | undefined => ({ "anthropic-version": "2023-06-01" })[name];

/** Members of requests that make an answer show as much as it can. */
const shown: Readonly<Record<string, object>> = {
  chat: { logprobs: true, stream_options: { include_usage: true }, stream: true },
  completions: { logprobs: 1, stream_options: { include_usage: true }, stream: true },
  responses: { include: ["message.output_text.logprobs"], stream: true },
  messages: { stream: true },
};

const withoutExtensions: Readonly<Record<string, object>> = {
  chat: { model: "m", messages: [{ role: "user", content: "Hi" }] },
  completions: { model: "m", prompt: "Hi" },
};

function requestOf(port: Port, profile = lean): ReadRequest {
  const valid = [...validBodies("m"), ...validForms("m")].find(({ path }) => path === `/v1${port.path}`);
  if (!valid) throw new Error(`test/support/hostile-bodies.ts has no request for ${port.path}.`);
  // Profile exact refuses the extensions of other servers.
  const plain = profile === exact ? withoutExtensions[port.name] : undefined;
  const body = { ...(plain ?? (valid.body as object)), ...shown[port.name] };
  return runSync(port.readRequest(body, "req_1", { profile, header }));
}

let measured = 0;

/** Prints the worst growth, and fails for each shape that grows too much. By day, each has other shapes than the one before. */
function measure(what: string, shapes: Readonly<Record<string, (size: number) => () => unknown>>): void {
  const ratios = dailyPart(Object.entries(shapes), 4, measured++).map(
    ([shape, work]) => [shape, growthOf(work)] as const,
  );
  const [worst] = ratios.toSorted(([, a], [, b]) => b - a);
  if (process.env["TRUEWIRE_GROWTH"] !== undefined)
    process.stdout.write(`${what}: ${ratios.length} shapes, worst ${worst?.[1].toFixed(1)} (${worst?.[0]})\n`);
  expect(ratios.filter(([, ratio]) => ratio > maxGrowth)).toEqual([]);
}

function mapShapes<Made>(
  shapes: Readonly<Record<string, Shape<Made>>>,
  use: (made: Made) => unknown,
): Record<string, (size: number) => () => unknown> {
  return Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => [
      name,
      (size: number) => {
        const made = shape(size);
        return () => use(made);
      },
    ]),
  );
}

describe("writers of streams", () => {
  const cases = ports.flatMap((port) =>
    [lean, exact].map((profile) => [port.name, profile.name, port, profile] as const),
  );
  test.each(cases)("%s, %s", (_, __, port, profile) => {
    const request = requestOf(port, profile);
    const write = (events: readonly GenerationEvent[]): number => {
      const writer = request.streamWriter({ ...context, profile });
      let length = 0;
      for (const event of events) length += writer.write([event]).length;
      return length;
    };
    measure(`writes ${port.name}, ${profile.name}`, mapShapes(eventShapes, write));
  });
});

test.each(ports.map((port) => [port.name, port] as const))("writers of whole answers: %s", (_, port) => {
  const request = requestOf(port);
  measure(
    `writes a whole ${port.name}`,
    mapShapes(eventShapes, (events) => request.writeResponse(accumulate(events), context)),
  );
});

const sources = { ...sourcePorts, completions: completionsSource };
const sourceNames = Object.keys(sources) as (keyof typeof sources)[];

/** The stream of an API with these events. */
function streamOf(api: string, events: readonly GenerationEvent[]): string {
  const port =
    ports.find(({ name }) => name === (api === "ollama" ? "ollama-chat" : api)) ??
    ports.find(({ path }) => path === "/api/chat");
  if (!port) throw new Error(`No port writes ${api}.`);
  const writer = requestOf(port).streamWriter(context);
  return events.map((event) => writer.write([event])).join("");
}

describe("readers of streams", () => {
  test("each API has hostile streams of its own", () => {
    expect(Object.keys(wireShapes).toSorted()).toEqual(sourceNames.toSorted());
  });

  const inPieces = (text: string, length: number): string[] =>
    Array.from({ length: Math.ceil(text.length / length) }, (_, at) => text.slice(at * length, (at + 1) * length));
  const readersOf =
    (api: keyof typeof sources) =>
    (pieces: readonly (string | Uint8Array)[]): number => {
      const reader = sources[api].reader({ newCallId: () => "call_new" });
      let events = 0;
      for (const piece of pieces) {
        events += reader.push(piece).length;
        if (reader.finished) events++;
      }
      return events + reader.end().length;
    };

  test.each(sourceNames)("%s: what a server writes", (api) => {
    const shapes = Object.fromEntries(
      Object.entries(eventShapes).map(([name, shape]) => [name, (n: number) => inPieces(streamOf(api, shape(n)), 61)]),
    );
    measure(`reads ${api}, written`, mapShapes(shapes, readersOf(api)));
  });

  test.each(sourceNames)("%s: what a server should not write", (api) => {
    const shapes = Object.fromEntries(
      Object.entries({ ...frameShapes, ...wireShapes[api] }).map(([name, shape]) => [
        name,
        (n: number) => inPieces(shape(n), 61),
      ]),
    );
    measure(`reads ${api}, hostile`, mapShapes(shapes, readersOf(api)));
  });

  test.each(sourceNames)("%s: byte by byte", (api) => {
    const bytes = (text: string): Uint8Array[] =>
      Array.from(new TextEncoder().encode(text), (byte) => Uint8Array.of(byte));
    const shapes = Object.fromEntries(
      ["one long text", "many short texts", "many calls"].map((name) => [
        name,
        (n: number) => bytes(streamOf(api, eventShapes[name]?.(Math.ceil(n / 16)) ?? [])),
      ]),
    );
    measure(`reads ${api}, bytes`, mapShapes(shapes, readersOf(api)));
  });

  test.each(sourceNames)("%s: as the body of an answer", (api) => {
    const shapes = { ...frameShapes, ...wireShapes[api] };
    measure(
      `reads ${api}, body`,
      mapShapes(shapes, (text) => readResponseBody(text, sources[api].reader({ newCallId: () => "call_new" }))),
    );
  });
});

test("output of programs", () => {
  const items: Record<string, Shape<unknown[]>> = {
    texts: (n) => Array.from({ length: n }, () => "x"),
    "reasoning and text in turns": (n) =>
      Array.from({ length: n }, (_, at) => (at % 2 ? "x" : { type: "reasoning", text: "x" })),
    calls: (n) => Array.from({ length: n }, () => ({ type: "tool-call", name: "f", arguments: {} })),
    arguments: (n) => [
      { type: "tool-call-start", name: "f" },
      ...Array.from({ length: n }, () => ({ type: "tool-call-delta", arguments: " " })),
    ],
    tokens: (n) =>
      Array.from({ length: n }, () => ({ type: "text", text: "x", logprobs: [{ token: "x", logprob: -1 }] })),
    extras: (n) => Array.from({ length: n }, (_, at) => ({ type: "extra", value: { [`x_${at}`]: at } })),
  };
  const read = (list: readonly unknown[]): number => {
    const reader = new OutputReader({ choice: 0, newCallId: () => "call_1", callsAllowed: true, format: plainText });
    let events = 0;
    for (const item of list) events += reader.read(item as Parameters<OutputReader["read"]>[0]).length;
    return events + reader.end().length;
  };
  measure("reads programs", mapShapes(items, read));
});

describe("AWS's event streams", () => {
  const chunk = (text: string, headers = {}): Uint8Array =>
    eventStreamMessage(
      { ":message-type": "event", ":event-type": "chunk", ...headers },
      JSON.stringify({ bytes: btoa(text) }),
    );
  const read = (bytes: Uint8Array, size: number): number => {
    const decoder = new EventStreamDecoder();
    let length = 0;
    for (let at = 0; at < bytes.length; at += size) length += decoder.write(bytes.subarray(at, at + size)).length;
    return length + decoder.end().length;
  };
  const many = (n: number): Uint8Array => Buffer.concat(Array.from({ length: n }, () => chunk("{}")));
  const named = (n: number): object => Object.fromEntries(Array.from({ length: n / 8 }, (_, at) => [`h${at}`, ""]));

  test("read", () =>
    measure("reads event streams", {
      "a long event in small pieces": (n) => () => read(chunk("x".repeat(n)), 16),
      "a long event, byte by byte": (n) => () => read(chunk("x".repeat(n / 4)), 1),
      "many events in one piece": (n) => () => read(many(n / 8), Infinity),
      "many events in small pieces": (n) => () => read(many(n / 8), 7),
      "written from one long event": (n) => () => eventStreamOf(`event: a\ndata: ${"x".repeat(n)}\n\n`),
      "written from many events": (n) => () => eventStreamOf("event: a\ndata: {}\n\n".repeat(n / 8)),
      "many headers": (n) => () => read(chunk("{}", named(n)), 1024),
    }));

  const converse = (type: string, payload: object): Uint8Array =>
    eventStreamMessage({ ":message-type": "event", ":event-type": type }, JSON.stringify(payload));
  const deltas = (n: number, delta: (at: number) => object): Uint8Array =>
    Buffer.concat(Array.from({ length: n / 16 }, (_, at) => converse("contentBlockDelta", delta(at))));
  const readConverse = (bytes: Uint8Array, size: number): number => {
    const decoder = converseSource.streams?.decoder();
    const reader = converseSource.reader({ newCallId: () => "call_1" });
    let events = 0;
    const push = (text = ""): number => (events += reader.push(text).length);
    for (let at = 0; at < bytes.length; at += size) push(decoder?.write(bytes.subarray(at, at + size)));
    push(decoder?.end());
    return events + reader.end().length;
  };

  test("Converse", () =>
    measure("reads Converse", {
      "deltas of one text": (n) => () =>
        readConverse(
          deltas(n, () => ({ contentBlockIndex: 0, delta: { text: "x" } })),
          4096,
        ),
      "deltas of many blocks": (n) => () =>
        readConverse(
          deltas(n, (at) => ({ contentBlockIndex: at, delta: { text: "x" } })),
          4096,
        ),
      "deltas of reasoning and text in turns": (n) => () =>
        readConverse(
          deltas(n, (at) => ({
            contentBlockIndex: 0,
            delta: at % 2 ? { text: "x" } : { reasoningContent: { text: "x" } },
          })),
          4096,
        ),
      "deltas of a call": (n) => () =>
        readConverse(
          deltas(n, () => ({ contentBlockIndex: 0, delta: { toolUse: { input: " " } } })),
          4096,
        ),
      "a long text in one piece": (n) => () =>
        readConverse(converse("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "x".repeat(n) } }), 64),
      "many blocks of a whole answer": (n) => () =>
        converseSource
          .reader({ newCallId: () => "call_1" })
          .readBody({ output: { message: { content: Array.from({ length: n / 8 }, () => ({ text: "x" })) } } }),
      "many documents of one name": (n) => () => {
        const document = { type: "document", title: "a", source: { type: "text", data: "x" } };
        const content = Array.from({ length: n / 8 }, () => document);
        return converseSource.rewrite?.({ messages: [{ role: "user", content }] }, {}, () => {});
      },
      "a long title": (n) => () => {
        const document = { type: "document", title: "_".repeat(n), source: { type: "text", data: "x" } };
        return converseSource.rewrite?.({ messages: [{ role: "user", content: [document] }] }, {}, () => {});
      },
    }));
});

describe("captures", () => {
  const captures = Object.fromEntries(
    ["chat", "responses", "messages"].flatMap((api) =>
      Object.entries({
        ...wireShapes[api],
        "short texts": (n: number) => streamOf(api, eventShapes["many short texts"]?.(n) ?? []),
      }).map(([name, shape]) => [`${api}: ${name}`, shape] as const),
    ),
  );

  test("check", () =>
    measure(
      "checks",
      mapShapes({ ...captures, ...frameShapes }, (text) => judgeCapture("capture", text)),
    ));

  test("repair", () =>
    measure(
      "repairs",
      mapShapes({ ...captures, ...frameShapes }, (text) =>
        repairCapture(text, { profile: lean, from: "auto", random: () => 0.5, now: 1_786_000_000 }),
      ),
    ));
});
