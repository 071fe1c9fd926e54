import { existsSync, readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Message, Tool } from "../../src/wire/core/message.ts";
import { ChatTemplate } from "../../src/text/templates/chat-template.ts";
import type { RenderedPrompt } from "../../src/text/templates/rendered-prompt.ts";
import { times } from "../support/runs.ts";

// Whatever a client writes, in whatever place, no published template makes a special token of it; and the prompt
// reads as if nothing had been marked.

const folder = new URL("../../../shared/chat-templates/", import.meta.url);
const files = existsSync(folder) ? readdirSync(folder) : [];

const specialTokens = [
  "<|im_start|>",
  "<|im_end|>",
  "<think>",
  "</think>",
  "<tool_call>",
  "</tool_call>",
  "[INST]",
  "[/INST]",
  '<|"|>',
  "<｜User｜>",
  "]~b]",
];
const now = new Date(2026, 0, 1);

// Pieces of special tokens, whole ones, and what templates look for or cut off.
const piece = fc.constantFrom(
  ...specialTokens,
  ...specialTokens.flatMap((token) => [token.slice(0, 3), token.slice(3), token.slice(1, -1)]),
  "a",
  "word ",
  " ",
  "\n",
  '"',
  "'",
  "\\",
  "\ue000",
  "\ue001\ue002",
  "\u{f0000}",
  "é😀",
);
const text = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join(""));

interface Texts {
  readonly system: string;
  readonly user: string;
  readonly answer: string;
  readonly reasoning: string;
  readonly argument: string;
  readonly key: string;
  readonly result: string;
  readonly description: string;
  readonly again: string;
}

const texts = fc.record<Texts>({
  system: text,
  user: text,
  answer: text,
  reasoning: text,
  argument: text,
  key: text,
  result: text,
  description: text,
  again: text,
});

const harmless: Texts = {
  system: "s",
  user: "u",
  answer: "a",
  reasoning: "r",
  argument: "g",
  key: "k",
  result: "t",
  description: "d",
  again: "n",
};

function conversation(words: Texts): { messages: Message[]; tools: Tool[] } {
  return {
    messages: [
      { role: "system", content: words.system },
      { role: "user", content: words.user },
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: words.reasoning },
          { type: "text", text: words.answer },
        ],
      },
      { role: "user", content: words.again },
      {
        role: "assistant",
        content: [
          {
            type: "tool-call",
            id: "call_1",
            name: "look_up",
            arguments: JSON.stringify({ [`k${words.key}`]: words.argument }),
          },
        ],
      },
      { role: "tool", content: words.result, toolCallId: "call_1" },
      { role: "assistant", content: words.answer },
      { role: "user", content: words.again },
    ],
    tools: [
      {
        name: "look_up",
        description: words.description,
        parameters: {
          type: "object",
          properties: { [`k${words.key}`]: { type: "string", description: words.description } },
          required: [`k${words.key}`],
        },
      },
    ],
  };
}

function render(template: ChatTemplate, words: Texts): RenderedPrompt | string {
  try {
    return template.render({ ...conversation(words), options: {}, now });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** How often a special token stands in the parts that are tokenized with special tokens. */
function occurrences(token: string, prompt: RenderedPrompt): number {
  return prompt.spans.reduce((sum, { text, special }) => sum + (special ? text.split(token).length - 1 : 0), 0);
}

if (files.length === 0) console.log("skipped: no ../shared/chat-templates to find user text in");

describe.skipIf(files.length === 0)("published templates (skipped without ../shared)", () => {
  test.each(files)("%s", (file) => {
    const source = readFileSync(new URL(file, folder), "utf8");
    const guarded = new ChatTemplate({ source, specialTokens });
    const plain = new ChatTemplate({ source, specialTokens: [] });
    fc.assert(
      fc.property(texts, (words) => {
        const got = render(guarded, words);
        const want = render(plain, words);
        if (typeof got === "string" || typeof want === "string") {
          expect(got).toEqual(want);
          return;
        }
        expect(got.spans.map((span) => span.text).join("")).toBe(got.text);
        expect(got.text).toBe(want.text);
        expect(got.generationPrefix).toBe(want.generationPrefix);
        const suspects = forged(specialTokens, got, guarded, [harmless, disguised(words)]);
        // What the template itself writes may depend on what it finds in the text: `<think>` before a text with `</think>`, say.
        const sure = suspects.filter((token) => forged([token], got, guarded, [disguised(words, token)]).length > 0);
        expect(sure).toEqual([]);
      }),
      { numRuns: times(10), seed: 7 },
    );
  });
});

// The same for markup that is not a control token, in what users say, tools return and calls were given.
describe.skipIf(files.length === 0)("published templates and markup (skipped without ../shared)", () => {
  const markupTokens = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"];
  const control = specialTokens.filter((token) => !markupTokens.includes(token));
  const foreign = fc.record({ user: text, again: text, result: text, argument: text });

  test.each(files)("%s", (file) => {
    const source = readFileSync(new URL(file, folder), "utf8");
    const guarded = new ChatTemplate({ source, specialTokens: control, markupTokens });
    const plain = new ChatTemplate({ source, specialTokens: [] });
    const used = markupTokens.filter((token) => source.includes(token));
    fc.assert(
      fc.property(foreign, (said) => {
        const words = { ...harmless, ...said };
        const got = render(guarded, words);
        const want = render(plain, words);
        if (typeof got === "string" || typeof want === "string") {
          expect(got).toEqual(want);
          return;
        }
        expect(got.text).toBe(want.text);
        expect(got.spans.map((span) => span.text).join("")).toBe(got.text);
        const cut = got.spans.filter(({ text, special }) => !special && used.some((token) => text.includes(token)));
        expect(cut).toEqual([]);
        const suspects = forged(used, got, guarded, [harmless, disguised(words)]);
        const sure = suspects.filter((token) => forged([token], got, guarded, [disguised(words, token)]).length > 0);
        expect(sure).toEqual([]);
      }),
      { numRuns: times(6), seed: 7 },
    );
  });
});

/**
 * The same texts with lookalikes for what special tokens are made of: as empty or not, and free of special tokens; with `but`, free
 * of this one, while the others are left where they are whole.
 */
function disguised(words: Texts, but?: string): Texts {
  const whole = new RegExp(`(${specialTokens.map((token) => token.replace(/[|[\]]/g, "\\$&")).join("|")})`);
  const change = (word: string): string =>
    word
      .split(but === undefined ? /(?!)/ : whole)
      .map((part) =>
        part !== but && specialTokens.includes(part) ? part : part.replace(/[<[]/g, "(").replace(/[>\]]/g, ")"),
      )
      .join("");
  return Object.fromEntries(
    Object.entries(words).map(([name, word]: [string, string]) => [name, change(word)]),
  ) as unknown as Texts;
}

/** Those of the tokens that are there more often than in each prompt made of the other texts. */
function forged(
  tokens: readonly string[],
  prompt: RenderedPrompt,
  template: ChatTemplate,
  others: readonly Texts[],
): string[] {
  const without = others.map((words) => render(template, words));
  return tokens.filter((token) =>
    without.every((other) => typeof other !== "string" && occurrences(token, prompt) > occurrences(token, other)),
  );
}
