import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { accumulate } from "../../wire/core/accumulate.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import type { Format } from "./format.ts";
import { knownFormats } from "./known.ts";
import { TextReader } from "./text-reader.ts";
import type { TextReaderOptions } from "./text-reader.ts";
import { runs } from "../../../test/support/runs.ts";

/** All strings of a description: its markers, and what looks like them. */
function stringsOf(value: unknown): string[] {
  if (typeof value === "string")
    return [value.replaceAll("{name}", "f").replaceAll("{key}", "a").replaceAll("{index}", "0")];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, part]) => (key === "id" || key === "aliases" ? [] : stringsOf(part)));
}

const debris = [
  "f",
  "a",
  '{"name": "f", "arguments": {"a": 1}}',
  '{"name": "f", "arguments": {"a":',
  '{"',
  '": ',
  "{",
  "}",
  "[",
  "]",
  "(",
  ")",
  "a=1",
  "'x'",
  ",",
  ":",
  '"',
  "\\",
  "\n",
  " ",
  "<",
  ">",
  "1",
  "true",
  "\u0000",
  "é",
  "😀",
  "\ud83d",
  "```json\n",
  "Hello ",
  "f(a='b', c=[1, {'d': None}])",
  "null",
];

/** Text with the format's own markers, prefixes of them, and other text in any order. */
function textFor(format: Format): fc.Arbitrary<string> {
  const markers = stringsOf(format).filter((text) => text !== "");
  const aMarker = markers.length > 0 ? fc.constantFrom(...markers) : fc.constant("");
  const half = fc.tuple(aMarker, fc.nat(12)).map(([marker, length]) => marker.slice(0, length));
  const part = fc.oneof(
    { arbitrary: aMarker, weight: 6 },
    { arbitrary: fc.constantFrom(...debris), weight: 6 },
    { arbitrary: half, weight: 1 },
    { arbitrary: fc.string({ unit: "binary", maxLength: 8 }), weight: 1 },
  );
  return fc.array(part, { maxLength: 24 }).map((parts) => parts.join(""));
}

const options: fc.Arbitrary<Partial<TextReaderOptions>> = fc.record(
  {
    prefix: fc.constantFrom("", "<think>", "<think>\n\n</think>\n\n", "<|start|>assistant", ">>>"),
    tools: fc.constantFrom([], [{ name: "f" }], [{ name: "g" }]),
    callsAllowed: fc.boolean(),
    thinking: fc.boolean(),
    separateReasoning: fc.boolean(),
  },
  { requiredKeys: [] },
);

function read(
  format: Format,
  chunks: readonly string[],
  more: Partial<TextReaderOptions>,
  cut = false,
): GenerationEvent[] {
  let ids = 0;
  const reader = new TextReader({ format, choice: 0, newCallId: () => `call_${ids++}`, ...more });
  return [...chunks.flatMap((chunk) => reader.push(chunk)), ...reader.end(cut)];
}

function message(events: readonly GenerationEvent[]): unknown {
  const choice = accumulate(events).choices[0];
  return { text: choice?.text ?? "", reasoning: choice?.reasoning ?? "", calls: choice?.toolCalls ?? [] };
}

/** Calls do not nest, are numbered, and all events of a call are between its start and its end. */
function expectLegal(events: readonly GenerationEvent[]): void {
  let open = false;
  let calls = 0;
  for (const event of events) {
    if (event.type === "tool-call-start") {
      expect(open).toBe(false);
      expect(event.index).toBe(calls++);
      expect(event.name).not.toBe("");
      open = true;
    } else if (event.type === "tool-call-delta" || event.type === "tool-call-end") {
      expect(open).toBe(true);
      expect(event.index).toBe(calls - 1);
      if (event.type === "tool-call-end") open = false;
    } else if (event.type === "text-delta" || event.type === "reasoning-delta") expect(open).toBe(false);
    else expect(event.type).toBe("markup");
  }
  expect(open).toBe(false);
}

function rawOf(events: readonly GenerationEvent[]): string {
  return events
    .map((event) => {
      if (event.type === "markup") return event.raw;
      return event.type === "text-delta" || event.type === "reasoning-delta" ? event.text : "";
    })
    .join("");
}

// A busy machine takes its time.
const patience = 120_000;

describe.each(knownFormats.map((format) => [format.id, format] as const))("%s", (_id, format) => {
  test(
    "no character is lost, no order is broken, no call that ends well has other than JSON",
    () => {
      fc.assert(
        fc.property(textFor(format), options, fc.boolean(), (text, more, cut) => {
          const events = read(format, [text], { ...more, trace: true }, cut);
          expectLegal(events);
          // If reasoning is not separated, reasoning that the prompt has opened belongs to the content.
          const begun = more.separateReasoning === false && more.prefix === "<think>" ? more.prefix : "";
          expect([text, begun + text]).toContain(rawOf(events));
          for (const call of accumulate(events).choices[0]?.toolCalls ?? []) {
            if (call.status !== "succeeded" || ("invalid" in format && format.invalid === "raw")) continue;
            expect(() => JSON.parse(call.arguments), call.arguments).not.toThrow();
          }
        }),
        runs(40),
      );
    },
    patience,
  );

  test(
    "the message is the same for every way of cutting the text",
    () => {
      fc.assert(
        fc.property(textFor(format), fc.array(fc.nat(200), { maxLength: 12 }), options, (text, places, more) => {
          const whole = message(read(format, [text], more));
          expect(message(read(format, text.split(""), more))).toEqual(whole);
          const cuts = [...new Set(places)].filter((at) => at < text.length).sort((a, b) => a - b);
          const chunks = [0, ...cuts].map((at, i) => text.slice(at, cuts[i]));
          expect(message(read(format, chunks, more))).toEqual(whole);
        }),
        runs(40),
      );
    },
    patience,
  );
});
