import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type * as z from "zod";
import { context, written } from "../../../../test/support/chat-stream.ts";
import { legalBatches } from "../../../../test/support/legal-events.ts";
import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { writeCompletionResponse } from "../completions/write-body.ts";
import { completion } from "../completions/schema.ts";
import { CompletionStreamWriter } from "../completions/write-stream.ts";
import { serialize } from "../members.ts";
import { exact, lean } from "../profile.ts";
import { writeChatResponse } from "./write-body.ts";
import { chatChunk, chatCompletion } from "./schema.ts";

const requested = fc.record({
  includeUsage: fc.boolean(),
  includeStopString: fc.boolean(),
  includeTimings: fc.boolean(),
  includeTokenIds: fc.boolean(),
  includePromptLogprobs: fc.boolean(),
  includeProgress: fc.boolean(),
});

/** Events of extensions, which `legalBatches` does not have. */
const extensions: GenerationEvent[] = [
  { type: "prompt", prompt: 0, tokens: [1, 2], logprobs: [null] },
  { type: "progress", choice: 0, total: 4, cached: 1, processed: 2, ms: 3 },
  { type: "tokens", choice: 0, tokens: [7] },
];

/** The data of each chunk of a stream. */
function dataOf(stream: string): string[] {
  return stream.split("\n\n").flatMap((event) => (event.startsWith("data: {") ? [event.slice(6)] : []));
}

/** Expects JSON that matches the schema, with the members in its order, at every depth. */
function expectWritten(schema: z.ZodType, json: string): void {
  const value: unknown = JSON.parse(json);
  expect(schema.safeParse(value).error?.issues).toBeUndefined();
  expect(JSON.stringify(value)).toBe(serialize(schema, value));
}

/** Whether the chunk has `usage` before `choices`, as OpenAI writes it in streams of several calls. */
const isUsageFirst = (json: string): boolean => json.includes('"usage":null,"choices":');

describe.each([lean, exact])("in profile $name", (profile) => {
  test("every chunk of a chat stream has the members of the schema in its order", () => {
    fc.assert(
      fc.property(legalBatches(), requested, (batches, asked) => {
        const stream = written([extensions, ...batches], context(profile, asked));
        for (const json of dataOf(stream)) if (!isUsageFirst(json)) expectWritten(chatChunk, json);
      }),
    );
  });

  test("every body of chat has the members of the schema in its order", () => {
    fc.assert(
      fc.property(legalBatches({ logprobs: true }), requested, fc.boolean(), (batches, asked, logprobs) => {
        const generation = accumulate([...extensions, ...batches.flat()]);
        expectWritten(chatCompletion, writeChatResponse(generation, context(profile, { ...asked, logprobs })));
      }),
    );
  });

  test("every completion has the members of the schema in its order", () => {
    fc.assert(
      fc.property(legalBatches(), fc.boolean(), (batches, includeUsage) => {
        const answer = context(profile, { includeUsage });
        expectWritten(completion, writeCompletionResponse(accumulate(batches.flat()), answer));
        const writer = new CompletionStreamWriter(answer);
        const stream = batches.map((batch) => writer.write(batch)).join("");
        // In profile exact, `model` is after `choices`, and usage before the `choices` of the last chunk.
        if (profile === lean) for (const json of dataOf(stream)) expectWritten(completion, json);
      }),
    );
  });
});
