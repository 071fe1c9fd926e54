import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { legalBatches } from "../../../../test/support/legal-events.ts";
import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent, TokenLogprob, Usage } from "../../core/events.ts";
import type { ChoicesContext, RequestedAnswer } from "../choices-answer.ts";
import { exact, lean } from "../profile.ts";
import type { Profile } from "../profile.ts";
import { CompletionStreamWriter } from "./write-stream.ts";
import { writeCompletionResponse } from "./write-body.ts";

function context(profile: Profile, asked: Partial<RequestedAnswer> = {}): ChoicesContext {
  const plain = { stream: true, includeUsage: false, logprobs: false, includeTimings: false };
  return {
    profile,
    requested: { ...plain, namedToolChoice: false, legacyFunctions: false, ...asked },
    id: "cmpl-Test",
    created: 1_800_000_000,
    model: "tiny",
    settings: {},
    random: () => 0,
  };
}

function written(batches: readonly (readonly GenerationEvent[])[], answer: ChoicesContext): string {
  const writer = new CompletionStreamWriter(answer);
  return batches.map((batch) => writer.write(batch)).join("");
}

const text = (text: string): GenerationEvent => ({ type: "text-delta", choice: 0, text });
const finish: GenerationEvent = { type: "finish", choice: 0, reason: "length" };
const done: GenerationEvent = { type: "end", end: { kind: "done" } };
const usage: GenerationEvent = { type: "usage", usage: { promptTokens: 2, completionTokens: 1 } };

test("profile lean, to the byte: the finish reason always has its own chunk", () => {
  const head =
    'data: {"id":"cmpl-Test","object":"text_completion","created":1800000000,"model":"tiny","system_fingerprint":null,';
  expect(written([[text("Hi"), finish, usage, done]], context(lean, { includeUsage: true }))).toBe(
    `${head}"choices":[{"text":"Hi","index":0,"logprobs":null,"finish_reason":null}],"usage":null}\n\n` +
      `${head}"choices":[{"text":"","index":0,"logprobs":null,"finish_reason":"length"}],"usage":null}\n\n` +
      `${head}"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3}}\n\n` +
      "data: [DONE]\n\n",
  );
});

test("profile exact, to the byte: length in the chunk of the last text, model after choices, another order in the last chunk", () => {
  const head = 'data: {"id":"cmpl-Test","object":"text_completion","created":1800000000,';
  expect(written([[text("Hi")], [text("!"), finish, usage], [done]], context(exact, { includeUsage: true }))).toBe(
    `${head}"choices":[{"text":"Hi","index":0,"logprobs":null,"finish_reason":null}],"model":"tiny","usage":null}\n\n` +
      `${head}"choices":[{"text":"!","index":0,"logprobs":null,"finish_reason":"length"}],"model":"tiny","usage":null}\n\n` +
      `${head}"model":"tiny","usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3},"choices":[]}\n\n` +
      "data: [DONE]\n\n",
  );
});

test("profile exact does not delay text until the choice ends", () => {
  const writer = new CompletionStreamWriter(context(exact));
  expect(writer.write([text("Hi")])).toContain('"text":"Hi"');
  expect(writer.write([finish])).toContain('{"text":"","index":0,"logprobs":null,"finish_reason":"length"}');
});

test("profile exact leaves out completion_tokens when there are none", () => {
  const none: GenerationEvent = { type: "usage", usage: { promptTokens: 2, completionTokens: 0 } };
  expect(written([[finish, none, done]], context(exact, { includeUsage: true }))).toContain(
    '"usage":{"prompt_tokens":2,"total_tokens":2}',
  );
});

// llama-cpp-python 0.3.36 sends no usage in a stream. Chats had an estimate, completions nothing.
test("tokens that the source has not counted are estimated", () => {
  const asked = { includeUsage: true, estimatePrompt: (): number => 7 };
  const estimated = '"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}';
  expect(written([[text("Hi"), finish, done]], context(lean, asked))).toContain(estimated);
  expect(written([[text("Hi"), finish, done]], context(lean, { ...asked, includeUsage: false }))).not.toContain(
    "usage",
  );
  expect(writeCompletionResponse(accumulate([text("Hi"), finish, done]), context(lean, asked))).toContain(estimated);
});

test("a failed answer ends with an error, after all text that came before", () => {
  const failure = { message: "gone", status: 503, kind: "unavailable" as const };
  const stream = written([[text("Hi"), { type: "end", end: { kind: "engine-error", failure } }]], context(exact));
  expect(stream).toMatch(/"text":"Hi".*\n\ndata: {"error":{"message":"gone".*\n\ndata: \[DONE\]\n\n$/);
});

test("an early opening writes nothing, and so does a client's disconnect", () => {
  const writer = new CompletionStreamWriter(context(lean));
  expect(writer.open()).toBe("");
  expect(writer.write([{ type: "end", end: { kind: "client-gone" } }])).toBe("");
  expect(writer.write([text("late")])).toBe("");
});

describe("logprobs in the legacy form", () => {
  const token = (token: string, logprob: number, top: readonly [string, number][] = []): TokenLogprob => ({
    token,
    logprob,
    bytes: null,
    top: top.map(([token, logprob]) => ({ token, logprob, bytes: null })),
  });
  const offsets = { byPrompt: [3], choicesPerPrompt: 1 };
  const answer = context(lean, { logprobs: true, textOffsets: offsets });

  test("offsets continue from chunk to chunk, in characters; the chosen token is always among the top ones", () => {
    const pieces: GenerationEvent[] = [
      { type: "text-delta", choice: 0, text: "😀a", logprobs: [token("😀", -1, [["b", -0.5]]), token("a", -2)] },
      { type: "text-delta", choice: 0, text: "b", logprobs: [token("b", -3)] },
    ];
    const parsed = written([pieces], answer).split("\n\n").filter(Boolean);
    const logprobs = parsed.map(
      (line) => (JSON.parse(line.slice(6)) as { choices: { logprobs: unknown }[] }).choices[0]?.logprobs,
    );
    expect(logprobs).toEqual([
      {
        tokens: ["😀", "a"],
        token_logprobs: [-1, -2],
        top_logprobs: [{ b: -0.5, "😀": -1 }, { a: -2 }],
        text_offset: [3, 4],
      },
      { tokens: ["b"], token_logprobs: [-3], top_logprobs: [{ b: -3 }], text_offset: [5] },
    ]);
  });

  // In profile exact it was NaN, which is not JSON, and `{"Hello":null}` among the top ones.
  test.each([lean, exact])("the first token of an echoed prompt has null in both lists ($name)", (profile) => {
    const first: TokenLogprob = { token: "Hello", logprob: null, bytes: null, top: [] };
    const events: GenerationEvent[] = [
      { type: "text-delta", choice: 0, text: "Hello you", logprobs: [first, token(" you", -1)] },
    ];
    const [line = ""] = written([events], { ...context(profile, { logprobs: true, textOffsets: offsets }) }).split(
      "\n",
    );
    const { choices } = JSON.parse(line.slice("data: ".length)) as { choices: { logprobs: unknown }[] };
    expect(choices[0]?.logprobs).toMatchObject({ token_logprobs: [null, -1], top_logprobs: [null, { " you": -1 }] });
  });

  test("a token may be called like something that every object has", () => {
    const events: GenerationEvent[] = [
      { type: "text-delta", choice: 0, text: "x", logprobs: [token("constructor", -1)] },
    ];
    expect(written([events], answer)).toContain('"top_logprobs":[{"constructor":-1}]');
  });

  test("a token that is a part of a character is written as its bytes", () => {
    const half = { token: "\uFFFD", logprob: -1, bytes: [0xf0, 0x9f], top: [] };
    const generation = accumulate([{ type: "text-delta", choice: 0, text: "", logprobs: [half] }, finish, done]);
    expect(writeCompletionResponse(generation, answer)).toContain(String.raw`"tokens":["bytes:\\xf0\\x9f"]`);
  });
});

describe("any legal generation", () => {
  const only = { calls: false, reasoning: false, refusals: false };

  test.each([lean, exact])("is written in profile $name as the obvious encoder writes it", (profile) => {
    fc.assert(
      fc.property(legalBatches(only), fc.boolean(), (batches, includeUsage) => {
        const answer = context(profile, { includeUsage });
        expect(written(batches, answer)).toBe(obviousStream(batches, answer));
      }),
      { numRuns: 300 },
    );
  });

  test.each([lean, exact])("is the same streamed in profile $name as not streamed", (profile) => {
    fc.assert(
      fc.property(legalBatches(only), (batches) => {
        const answer = context(profile, { includeUsage: true });
        const whole: Answer = JSON.parse(writeCompletionResponse(accumulate(batches.flat()), answer));
        const lines = written(batches, answer)
          .split("\n\n")
          .filter((line) => line.startsWith("data: {"));
        const texts = new Map<number, string>();
        const reasons = new Map<number, string>();
        for (const { choices } of lines.map((line): Answer => JSON.parse(line.slice(6)))) {
          for (const { index, text, finish_reason: reason } of choices) {
            texts.set(index, (texts.get(index) ?? "") + text);
            if (reason !== null) reasons.set(index, reason);
          }
        }
        for (const { index, text, finish_reason: reason } of whole.choices) {
          expect([texts.get(index), reasons.get(index)]).toEqual([text, reason]);
        }
      }),
      { numRuns: 200 },
    );
  });
});

interface Answer {
  readonly choices: readonly { readonly index: number; readonly text: string; readonly finish_reason: string | null }[];
}

/** One object a chunk, JSON.stringify, no cleverness; without logprobs. */
function obviousStream(
  batches: readonly (readonly GenerationEvent[])[],
  { profile, requested: asked, id, created, model }: ChoicesContext,
): string {
  const isLean = profile.name === "lean";
  let stream = "";
  let counted: Usage | undefined;
  const send = (index: number, text: string, reason: string | null): void => {
    const choices = [{ text, index, logprobs: null, finish_reason: reason }];
    const start = { id, object: "text_completion", created };
    const nothing = asked.includeUsage ? { usage: null } : {};
    const chunk = isLean
      ? { ...start, model, system_fingerprint: null, choices, ...nothing }
      : { ...start, choices, model, ...nothing };
    stream += `data: ${JSON.stringify(chunk)}\n\n`;
  };
  for (const batch of batches) {
    // In profile exact each choice's last text of the batch waits for the batch's end, or for the choice's next event.
    const waiting = new Map<number, string>();
    const flush = (choice: number, reason: string | null): boolean => {
      const text = waiting.get(choice);
      waiting.delete(choice);
      if (text !== undefined) send(choice, text, reason);
      return text !== undefined;
    };
    for (const event of batch) {
      if (event.type === "text-delta" && event.text !== "") {
        flush(event.choice, null);
        waiting.set(event.choice, event.text);
        if (isLean) flush(event.choice, null);
      } else if (event.type === "finish") {
        const isLength = event.reason === "length";
        const rides = flush(event.choice, isLength && !isLean ? event.reason : null) && isLength && !isLean;
        if (!rides) send(event.choice, "", event.reason);
      } else if (event.type === "usage") {
        counted = event.usage;
      } else if (event.type === "end") {
        stream += closing(counted) + "data: [DONE]\n\n";
      }
    }
    for (const choice of [...waiting.keys()].sort((a, b) => order(batches, a) - order(batches, b))) flush(choice, null);
  }
  return stream;

  function closing(usage: Usage | undefined): string {
    if (!usage || !asked.includeUsage) return "";
    const { promptTokens, completionTokens, promptDetails, completionDetails } = usage;
    const total = promptTokens + completionTokens;
    const start = { id, object: "text_completion", created, model };
    if (!isLean) {
      const spent = completionTokens > 0 ? { completion_tokens: completionTokens } : {};
      const counts = { prompt_tokens: promptTokens, ...spent, total_tokens: total };
      return `data: ${JSON.stringify({ ...start, usage: counts, choices: [] })}\n\n`;
    }
    const counts = {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: total,
      ...(promptDetails && { prompt_tokens_details: promptDetails }),
      ...(completionDetails && { completion_tokens_details: { reasoning_tokens: 7, audio_tokens: 0 } }),
    };
    return `data: ${JSON.stringify({ ...start, system_fingerprint: null, choices: [], usage: counts })}\n\n`;
  }
}

/** Choices that wait together go out in the order in which they began. */
function order(batches: readonly (readonly GenerationEvent[])[], choice: number): number {
  return batches.flat().findIndex((event) => event.type === "start" && event.choice === choice);
}
