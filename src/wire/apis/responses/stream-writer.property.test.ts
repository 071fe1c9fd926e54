import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { legalBatches } from "../../../../test/support/legal-events.ts";
import {
  responseOptions,
  responseContext,
  responseEvents,
  responseWriter,
  writtenResponse,
} from "../../../../test/support/response-stream.ts";
import type { ResponseEvent } from "../../../../test/support/response-stream.ts";
import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import type { JsonValue } from "../json-text.ts";
import { serialize } from "../members.ts";
import { exact, lean } from "../profile.ts";
import { openSeal } from "../turn-seal.ts";
import { writeResponse } from "./response-writer.ts";
import { writtenEvents } from "./event-schema.ts";

const members = fc.record({
  reasoning: fc.constantFrom({ summary: "auto" }, {}),
  include: fc.constantFrom([], ["reasoning.encrypted_content"], ["message.output_text.logprobs"]),
});

describe.each([lean, exact])("any legal generation in profile $name", (profile) => {
  test("is the same response streamed as not streamed", () => {
    fc.assert(
      fc.property(legalBatches({ logprobs: true, states: true }), members, (batches, asked) => {
        const streamed = responseEvents(writtenResponse(batches, profile, asked)).at(-1)?.["response"];
        const whole = writeResponse(accumulate(batches.flat()), responseContext(profile), responseOptions(asked));
        const { billing: _, ...body } = JSON.parse(whole) as { billing?: unknown };
        expect(streamed).toEqual(body);
      }),
      { numRuns: 200 },
    );
  });

  test("numbers its events without a gap, and each item's deltas add up to the item", () => {
    fc.assert(
      fc.property(legalBatches({ logprobs: true, states: true }), members, (batches, asked) => {
        const events = responseEvents(writtenResponse(batches, profile, asked));
        expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
        expect(assembled(events)).toEqual(itemsOf(events));
        expect(events.filter(({ type }) => /\.(completed|incomplete)$/.test(type))).toHaveLength(1);
        expectPlaces(events);
      }),
      { numRuns: 200 },
    );
  });

  test("has the members of every event and item in the order of the schemas, and no others", () => {
    fc.assert(
      fc.property(
        legalBatches({ logprobs: true, states: true }),
        members,
        fc.constantFrom(undefined, "a.b"),
        (batches, asked, lane) => {
          const writer = responseWriter(profile, asked);
          writer.streamId = lane;
          for (const event of responseEvents(batches.map((events) => writer.write(events)).join(""))) {
            expect(event["stream_id"]).toBe(lane);
            const schema = writtenEvents.get(event.type);
            expect(schema, event.type).toBeDefined();
            if (!schema) continue;
            expect(serialize(schema, event as unknown as JsonValue)).toBe(JSON.stringify(event));
            expect(Object.keys(event).filter((name) => !(name in schema.shape))).toEqual([]);
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  test("writes no complete call before a failure, and no incomplete call after one", () => {
    fc.assert(
      fc.property(legalBatches({ states: true }), members, fc.nat(), (batches, asked, cut) => {
        const all = batches.flat();
        const failure = { kind: "bad-answer", message: "Broken.", status: 502 } as const;
        const end: GenerationEvent = { type: "end", end: { kind: "truncated", failure } };
        const events = responseEvents(writtenResponse([[...all.slice(0, cut % all.length), end]], profile, asked));
        const failed = events.at(-1)?.type === "response.failed";
        const items = events.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item as Item);
        const called = items.some(({ type }) => type.endsWith("_call"));
        expect(failed).toBe(!called);
        if (failed) return;
        expectPlaces(events);
        // The state of a call without the call would be reasoning "without its required following item" (OpenAI).
        for (const [at, item] of items.entries())
          if (calledBy(item) !== undefined) expect(items[at + 1]?.call_id).toBe(calledBy(item));
        const added = events.filter(({ type }) => type === "response.output_item.added");
        expect(added).toHaveLength(items.length);
        expect(items.filter(({ status = "completed" }) => status !== "completed")).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });
});

/** What a client that listens to the deltas has of each item. */
function assembled(events: readonly ResponseEvent[]): string[] {
  const texts: string[] = [];
  for (const { type, output_index: place, delta } of events) {
    if (type === "response.output_item.added") texts[place as number] = "";
    if (type.endsWith(".delta")) texts[place as number] += delta as string;
  }
  return texts;
}

/** Items follow each other: each event of one names its place, between its first and its last event. */
function expectPlaces(events: readonly ResponseEvent[]): void {
  let count = 0;
  for (const { type, output_index: place } of events) {
    if (place !== undefined) expect(place, type).toBe(count);
    if (type === "response.output_item.done") count++;
  }
}

/** The id of the call whose state an item carries. */
function calledBy({ encrypted_content: encrypted }: Item): string | undefined {
  return encrypted === undefined ? undefined : openSeal.open(encrypted)?.callId;
}

interface Item {
  readonly type: string;
  readonly call_id?: string;
  readonly encrypted_content?: string;
  readonly status?: string;
  readonly content?: readonly { readonly text?: string; readonly refusal?: string }[];
  readonly summary?: readonly { readonly text: string }[];
  readonly arguments?: string;
  readonly input?: string;
}

function itemsOf(events: readonly ResponseEvent[]): string[] {
  return events.flatMap(({ type, item }) => {
    if (type !== "response.output_item.done") return [];
    const { content = [], summary = [], arguments: text = "", input = "" } = item as Item;
    return (
      content.map((part) => part.text ?? part.refusal ?? "").join("") +
      summary.map((part) => part.text).join("") +
      text +
      input
    );
  });
}
