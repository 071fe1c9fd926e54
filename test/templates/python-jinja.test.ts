import { existsSync, readdirSync, readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { PythonTemplate } from "../../src/text/templates/jinja/python-template.ts";
import { guardedTokens } from "../../src/text/templates/user-text.ts";
import { UserText } from "../../src/text/templates/user-text.ts";
import { askJinja, hasJinja, type JinjaResult } from "./ask-jinja.ts";

// Published templates over conversations of every kind, held against Python's own Jinja. Where Python fails and this does not, that
// is leniency on purpose (a member of something undefined, items of a text); anything else must be the same bytes.

const folder = new URL("../../../shared/chat-templates/", import.meta.url);
const files = existsSync(folder) && hasJinja ? readdirSync(folder) : [];

/** What Python does here that nobody wants. */
const waived: Readonly<Record<string, string>> = {
  "meetkai-functionary-medium-v3.1.jinja": "`safe` makes Python escape what is added to the text, quotes included",
};

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: `Tomorrow's "weather"`,
    parameters: {
      type: "object",
      properties: {
        city: { type: "string", description: "Where" },
        days: { type: "integer", description: "How far ahead", enum: [1, 2] },
        more: { type: "object", description: "é", properties: { unit: { type: "string", description: "C or F" } } },
        tags: { type: "array", description: "Any", items: { type: "string" } },
        items: { description: "A key that is also a method", anyOf: [{ type: "string" }, { type: "null" }] },
      },
      required: ["city"],
    },
  },
};
const answers = { city: `Paris's "best"`, days: 2, more: { a: 1.5, b: null, c: true }, tags: ["x"] };
const id = "abcdefghi";

function conversations(args: unknown): unknown[][] {
  const call = { id, type: "function", function: { name: "get_weather", arguments: args } };
  const result = { role: "tool", content: '{"t": 20}', tool_call_id: id, name: "get_weather" };
  return [
    [{ role: "user", content: "Hi" }],
    [
      { role: "system", content: " Be brief. " },
      { role: "user", content: " Hi\n" },
      { role: "assistant", content: "<think>\nold\n</think>\n\nHello!" },
      { role: "user", content: "Bye <b>" },
    ],
    [
      { role: "user", content: "Weather?" },
      { role: "assistant", content: "Let me see", reasoning_content: "hmm\n", tool_calls: [call] },
      result,
      { role: "assistant", content: "20 C", reasoning_content: "so" },
      { role: "user", content: [{ type: "text", text: "And then?" }] },
    ],
  ];
}

const jobs = [answers, JSON.stringify(answers)].flatMap((args) =>
  conversations(args).flatMap((messages) =>
    [{}, { tools: [weather] }, { tools: [weather], enable_thinking: false }].flatMap((more) =>
      [true, false].map((add_generation_prompt) => ({
        ...more,
        messages,
        add_generation_prompt,
        bos_token: "<s>",
        eos_token: "</s>",
      })),
    ),
  ),
);

if (files.length === 0)
  console.log("skipped: no ../shared/chat-templates, or no python3 with jinja2, to compare templates with");

describe.skipIf(files.length === 0)("Python's Jinja (skipped without ../shared, or without python3 and jinja2)", () => {
  const sources = files.map((file) => readFileSync(new URL(file, folder), "utf8"));
  let theirs: readonly JinjaResult[] = [];

  beforeAll(() => {
    theirs = askJinja(sources.flatMap((source) => jobs.map((variables) => ({ source, variables }))));
  });

  test.each(files.map((file, index) => [file, index] as const))("%s", (file, index) => {
    const template = new PythonTemplate(sources[index] ?? "");
    const different = jobs.flatMap((variables, job) => {
      const { text: want, error } = theirs[index * jobs.length + job] ?? {};
      if (want === undefined) {
        expect(error).toEqual(expect.any(String));
        return [];
      }
      const got = ours(template, variables);
      return got === want ? [] : [{ got, want }];
    });
    if (file in waived) expect(different, "the waiver is needed no more").not.toEqual([]);
    else expect(different).toEqual([]);
  });
});

function ours(template: PythonTemplate, variables: Readonly<Record<string, unknown>>): string {
  try {
    return template.render(variables, new Date(2024, 1, 3, 4, 5, 6), new UserText(guardedTokens([], [], []), "", []));
  } catch (error) {
    return `failed: ${error instanceof Error ? error.message : String(error)}`;
  }
}
