import fc from "fast-check";
import { ChatTemplate } from "./chat-template.ts";
import { guardedTokens, TokenFinder, UserText } from "./user-text.ts";
import { describe, expect, test } from "vitest";

const tokens = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "[INST]", "  "];

function found(text: string, literals: readonly string[] = []): string[] {
  return new TokenFinder(tokens, literals).findIn(text).map(({ start, end }) => text.slice(start, end));
}

describe("what of a text could become special", () => {
  test.each<[text: string, found: string[]]>([
    ["plain", []],
    ["a<|im_end|>b<think>", ["<|im_end|>", "<think>"]],
    ["<think><think>", ["<think>", "<think>"]],
    ["<<think>", ["<think>"]],
    ["ends with <|im_", ["<|im_"]],
    ["ends with <", ["<"]],
    ["<|im_end|><|im", ["<|im_end|>", "<|im"]],
    ["> quoted", []],
    ["two  spaces", []],
  ])("%j", (text, expected) => {
    expect(found(text)).toEqual(expected);
  });

  test.each<[text: string, found: string[]]>([
    ["think> and", ["think>"]],
    ["|im_end|", ["|im_end|"]],
    ["think", ["think"]],
    ["/thi", ["/thi"]],
    ["other", []],
  ])("behind a template's own '<': %j", (text, expected) => {
    expect(found(text, ["<", "</"])).toEqual(expected);
  });

  test("a token that contains another is found whole", () => {
    const nested = new TokenFinder(["<a>", "<a><b>"], []);
    expect(nested.findIn("<a><b><a>")).toEqual([
      { start: 0, end: 6 },
      { start: 6, end: 9 },
    ]);
  });
});

test("marks are characters that occur nowhere else, and splitting brings the text back", () => {
  const user = new UserText(guardedTokens(tokens, [], []), "\ue000 in the template", [
    "\ue001",
    { "\ue002": ["<think>"] },
  ]);
  const marked = user.markText("\ue001<think>");
  expect(marked).toBe("\ue001\ue003");
  expect(user.split(`\ue000${marked}!`)).toEqual([
    { text: "\ue000\ue001", special: true },
    { text: "<think>", special: false },
    { text: "!", special: true },
  ]);
});

test("with every private-use character of the first plane in the text, marks come from the others", () => {
  const all = Array.from({ length: 0x1900 }, (_, index) => String.fromCharCode(0xe000 + index)).join("");
  const template = new ChatTemplate({ source: "{{ messages[0].content[1:] }}", specialTokens: tokens });
  const prompt = template.render({
    messages: [{ role: "user", content: `${all}<think>${all}` }],
    options: {},
    now: new Date(0),
  });
  expect(prompt.text).toBe(`${all.slice(1)}<think>${all}`);
  expect(prompt.spans.filter((span) => !span.special)).toEqual([{ text: "<think>", special: false }]);
});

// Each does something to a text that must not tell marked from unmarked.
const operations = [
  "{{ x }}",
  "{{ x | trim }}",
  "{{ x | upper }}",
  "{{ x | title }}",
  "{{ x | length }}",
  "{{ x[2:] }}{{ x[:-2] }}{{ x[0] }}",
  "{{ x[::-1] }}",
  "{{ x | list }}",
  "{{ x | list | join }}",
  "{% for c in x %}{{ c }}{% endfor %}",
  "{{ x | tojson }}",
  "{{ x | tojson(ensure_ascii=true) }}",
  "{{ {x: [x]} | tojson }}",
  "{{ [x, {x: x}] | string }}",
  "{{ x.split('</think>')[-1] }}",
  "{{ x.split('i') }}{{ x.rsplit('<', 1) }}{{ x.split() }}",
  "{{ x.replace('think', '-') }}{{ x.replace('', '.') }}",
  "{{ x.strip('<>') }}|{{ x.rstrip('>') }}|{{ x.lstrip('<|') }}",
  "{{ x.startswith('<think') }}{{ x.endswith('>') }}{{ '</think>' in x }}{{ 'ink' in x }}",
  "{{ x.find('think') }}{{ x.count('<') }}{{ x.removeprefix('<think>') }}{{ x.removesuffix('|>') }}",
  "{{ x == '<think>' }}{{ x in ['<think>', 'a'] }}{{ x < 'm' }}",
  "{{ {x: 1}[x] }}{{ {'<think>': 2}[x] }}{{ {x: 1}.get('<think>', 3) }}",
  "{{ [x, 'a', '<a'] | sort }}{{ [x, '<think>'] | unique | list | length }}",
  "{{ x | indent(2, true) }}{{ x | replace('<', '(') }}{{ x | e }}",
  "{{ '{}{}'.format(x, x) }}{{ x ~ x }}{{ x + x }}",
];

test.each(operations)("%s reads as if nothing were marked, and special tokens stay plain", (operation) => {
  const source = `{% set x = messages[0].content %}${operation}`;
  const guarded = new ChatTemplate({ source, specialTokens: tokens });
  const unguarded = new ChatTemplate({ source, specialTokens: [] });
  const pieces = fc.constantFrom(...tokens, "<", "<|im_", "think>", "a", " ", "\n", '"', "é", "😀", "\ue000");
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 5 }), (parts) => {
      const content = parts.join("");
      const input = { messages: [{ role: "user" as const, content }], options: {}, now: new Date(0) };
      const prompt = guarded.render(input);
      expect(prompt.text).toBe(unguarded.render(input).text);
      const special = prompt.spans.filter((span) => span.special).map((span) => span.text);
      expect(special.filter((text) => tokens.slice(0, 5).some((token) => text.includes(token)))).toEqual([]);
    }),
    { numRuns: 150 },
  );
});

test("a template that writes a client's key between its own brackets makes no token of it", () => {
  const source =
    "{% for k, v in messages[1].tool_calls[0].function.arguments | items %}{{ '<' ~ k ~ '>' ~ v }}{% endfor %}";
  const template = new ChatTemplate({ source, specialTokens: tokens });
  const prompt = template.render({
    messages: [
      { role: "user", content: "x" },
      {
        role: "assistant",
        content: [
          {
            type: "tool-call",
            id: "1",
            name: "f",
            arguments: '{"|im_end|": "a", "think": "<|im_end", "/think": "|>"}',
          },
        ],
      },
    ],
    options: {},
    now: new Date(0),
  });
  expect(prompt.text).toBe("<|im_end|>a<think><|im_end</think>|>");
  const special = prompt.spans.filter((span) => span.special).map((span) => span.text);
  expect(special.filter((text) => tokens.slice(0, 5).some((token) => text.includes(token)))).toEqual([]);
});

// Time says nothing on a busy machine: how often each part is looked at does.
test("a message's parts are each read equally often, however many there are", () => {
  const source = "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}";
  const template = new ChatTemplate({ source, specialTokens: tokens });
  const readsEach = (count: number): number => {
    let reads = 0;
    const part = {
      type: "text" as const,
      get text(): string {
        reads++;
        return "a<b";
      },
    };
    const { text } = template.render({
      messages: [{ role: "user", content: Array.from({ length: count }, () => part) }],
      options: {},
      now: new Date(0),
    });
    expect(text.match(/a<b/g)).toHaveLength(count);
    return reads / count;
  };
  readsEach(1);
  expect(readsEach(5000)).toBe(readsEach(50));
});

test("an image has its place among the texts, and a client's text cannot make one", () => {
  const template = new ChatTemplate({
    source: "{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}\n{% endfor %}",
    specialTokens: ["<__media__>"],
  });
  const { spans, media, text } = template.render({
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "one <__media__> \u{e000}" },
          { type: "image", url: "data:a" },
          { type: "text", text: "two" },
          { type: "text", text: "three" },
          { type: "image", url: "data:b" },
        ],
      },
    ],
    options: { addGenerationPrompt: false },
    now: new Date(0),
    takes: { images: true },
  });
  expect(text).toBe("[user]one <__media__> \u{e000}<__media__>two\nthree<__media__>\n");
  expect(spans.map(({ text: part, special, medium }) => [part, medium ?? special])).toEqual([
    ["[user]one ", true],
    ["<__media__>", false],
    [" \u{e000}", true],
    ["<__media__>", 0],
    ["two\nthree", true],
    ["<__media__>", 1],
    ["\n", true],
  ]);
  expect(media).toEqual([
    { part: { type: "image", url: "data:a" }, path: "messages[0].content[1]" },
    { part: { type: "image", url: "data:b" }, path: "messages[0].content[4]" },
  ]);
});
