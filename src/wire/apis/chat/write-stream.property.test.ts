import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chunks, context, written } from "../../../../test/support/chat-stream.ts";
import type { Chunk } from "../../../../test/support/chat-stream.ts";
import { legalBatches } from "../../../../test/support/legal-events.ts";
import { obviousStream } from "../../../../test/support/obvious-chat-stream.ts";
import { accumulate } from "../../core/accumulate.ts";
import { exact, lean } from "../profile.ts";
import { writeChatResponse } from "./write-body.ts";

describe("any legal generation", () => {
  const asked = fc.record({
    includeUsage: fc.boolean(),
    includeObfuscation: fc.constantFrom(undefined, true, false),
    logprobs: fc.boolean(),
    namedToolChoice: fc.boolean(),
    includeReasoning: fc.constantFrom(undefined, true, false),
    includeStopString: fc.boolean(),
  });

  test.each([lean, exact])("is written in profile $name as the obvious encoder writes it", (profile) => {
    fc.assert(
      fc.property(
        legalBatches({ logprobs: true }),
        asked,
        (batches, { includeObfuscation, includeReasoning, ...rest }) => {
          const answer = context(profile, {
            ...rest,
            ...(includeObfuscation !== undefined && { includeObfuscation }),
            ...(includeReasoning !== undefined && { includeReasoning }),
          });
          expect(written(batches, answer)).toBe(obviousStream(batches.flat(), answer));
        },
      ),
      { numRuns: 400 },
    );
  });

  test.each([lean, exact])("is the same message streamed in profile $name as not streamed", (profile) => {
    fc.assert(
      fc.property(legalBatches(), (batches) => {
        const answer = context(profile, { includeUsage: true });
        const body: { choices: { message: Record<string, unknown>; finish_reason: string }[]; usage?: unknown } =
          JSON.parse(writeChatResponse(accumulate(batches.flat()), answer));
        const streamed = messagesOf(chunks(written(batches, answer)));
        const whole = body.choices.map(({ message, finish_reason: reason }) => comparable(message, reason));
        expect(streamed.messages).toEqual(whole);
        expect(streamed.usage).toEqual(body.usage);
      }),
      { numRuns: 300 },
    );
  });

  test("keeps every rule of the stream in profile lean", () => {
    fc.assert(
      fc.property(legalBatches(), fc.boolean(), (batches, includeUsage) => {
        const stream = written(batches, context(lean, { includeUsage }));
        expect(stream).toMatch(/^(data: [^\n]+\n\n)*data: \[DONE\]\n\n$/);
        const all = chunks(stream);
        const withChoice = all.filter(({ choices }) => choices.length > 0);
        expect(new Set(all.map(({ id, created }) => `${id} ${created}`)).size).toBeLessThanOrEqual(1);
        const usages = all.map(({ usage }) => usage);
        if (!includeUsage) expect(all.every((chunk) => !("usage" in chunk) && chunk.choices.length === 1)).toBe(true);
        else {
          expect(usages.slice(0, withChoice.length).every((usage) => usage === null)).toBe(true);
          expect(all.slice(withChoice.length).length).toBeLessThanOrEqual(1);
        }
        const choices = new Set(batches.flat().flatMap((event) => (event.type === "start" ? [event.choice] : [])));
        for (const index of choices)
          checkChoice(withChoice.flatMap((chunk) => chunk.choices.filter((one) => one.index === index)));
      }),
      { numRuns: 300 },
    );
  });
});

function checkChoice(list: readonly Chunk["choices"][number][]): void {
  const deltas = list.map(({ delta }) => delta);
  expect(deltas[0]).toEqual({ role: "assistant" });
  expect(deltas.slice(1).every((delta) => !("role" in delta))).toBe(true);
  expect(deltas.slice(0, -1).every((delta) => Object.keys(delta).length === 1)).toBe(true);
  expect(deltas.every(({ content }) => content !== "")).toBe(true);
  expect(deltas.at(-1)).toEqual({});
  expect(list.slice(0, -1).every((choice) => choice.finish_reason === null)).toBe(true);
  expect(list.at(-1)?.finish_reason).toBeTypeOf("string");
  for (const choice of list) expect(Object.keys(choice)).toEqual(["index", "delta", "logprobs", "finish_reason"]);
  const calls = deltas.flatMap(({ tool_calls: calls = [] }) => calls);
  const headers = calls.filter(({ id }) => id !== undefined);
  expect(headers.map(({ index }) => index)).toEqual(headers.map((_, index) => index));
  expect(headers.every((call) => call.function.arguments === "")).toBe(true);
  let last = -1;
  for (const { index, id, function: called } of calls) {
    expect(index).toBe(id === undefined ? last : last + 1);
    if (id === undefined) expect(Object.keys(called)).toEqual(["arguments"]);
    last = index;
  }
}

interface Told {
  readonly content: string;
  readonly refusal: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly reason: string;
}

function messagesOf(list: readonly Chunk[]): { readonly messages: readonly Told[]; readonly usage: unknown } {
  const messages: {
    content: string;
    refusal: string;
    reasoning: string;
    calls: { id: string; name: string; arguments: string }[];
    reason: string;
  }[] = [];
  for (const { choices } of list) {
    for (const { index, delta, finish_reason: reason } of choices) {
      const message = (messages[index] ??= { content: "", refusal: "", reasoning: "", calls: [], reason: "" });
      message.content += delta.content ?? "";
      message.refusal += (delta["refusal"] as string | undefined) ?? "";
      message.reasoning += (delta["reasoning_content"] as string | undefined) ?? "";
      for (const { index: at, id, function: called } of delta.tool_calls ?? []) {
        const call = (message.calls[at] ??= { id: id ?? "", name: called.name ?? "", arguments: "" });
        call.arguments += called.arguments;
      }
      message.reason += reason ?? "";
    }
  }
  const usages = list.flatMap(({ usage }) => (usage ? [usage] : []));
  return { messages, usage: usages[0] };
}

function comparable(message: Readonly<Record<string, unknown>>, reason: string): Told {
  const calls = (message["tool_calls"] ?? []) as { id: string; function: { name: string; arguments: string } }[];
  return {
    content: (message["content"] as string | null) ?? "",
    refusal: (message["refusal"] as string | null | undefined) ?? "",
    reasoning: (message["reasoning_content"] as string | undefined) ?? "",
    calls: calls.map(({ id, function: called }) => ({ id, ...called })),
    reason,
  };
}
