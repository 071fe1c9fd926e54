import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Answer } from "./answer.ts";
import { exportedText, readFile } from "./conversation-file.ts";
import type { FiledConversation } from "./conversation-file.ts";
import { TurnTree } from "./turn-tree.ts";
import { messagesOf } from "./turn.ts";
import type { Turn } from "./turn.ts";

const image = "data:image/png;base64,AAAA";

/** An answer that has everything that an answer can have. */
function fullAnswer(): Answer {
  const answer = new Answer(0);
  answer.take({ type: "reasoning-delta", choice: 0, text: "Let me see." }, 10);
  const alternative = { token: " ten", logprob: -0.5, bytes: null };
  answer.take(
    {
      type: "text-delta",
      choice: 0,
      text: "One",
      logprobs: [{ token: "One", logprob: -1, bytes: null, top: [alternative] }],
    },
    20,
  );
  answer.take({ type: "tool-call-start", choice: 0, index: 0, id: "call_1", name: "count" }, 30);
  answer.take({ type: "tool-call-delta", choice: 0, index: 0, arguments: '{"n":7}' }, 30);
  answer.take({ type: "tool-call-end", choice: 0, index: 0, status: "succeeded" }, 30);
  answer.take({ type: "finish", choice: 0, reason: "tool-calls" }, 30);
  answer.take({ type: "refusal-delta", choice: 1, text: "No." }, 40);
  answer.take(
    { type: "usage", usage: { promptTokens: 3, completionTokens: 7, promptDetails: { cached_tokens: 2 } } },
    40,
  );
  answer.take({ type: "end", end: { kind: "done" } }, 40);
  answer.status = 200;
  answer.requestId = "req_1";
  answer.cacheMiss = "The system prompt has changed.";
  return answer;
}

const request = { model: "m", temperature: 0.3, tools: [{ type: "function", function: { name: "count" } }] };
const turns: readonly Turn[] = [
  { kind: "question", id: "1", parent: "", created: 1, text: "hello", images: [image] },
  { kind: "answer", id: "2", parent: "1", created: 2, request, system: "Be brief.", answer: fullAnswer(), chosen: 1 },
  { kind: "results", id: "3", parent: "2/0", created: 3, results: [{ callId: "call_1", name: "count", text: "7" }] },
  { kind: "question", id: "4", parent: "2/1", created: 4, text: "why?", images: [] },
  { kind: "question", id: "5", parent: "", created: 5, text: "other", images: [] },
];
const filed: FiledConversation = {
  record: { title: "Hello", created: 1, changed: 5, shown: { "": "1", "2/1": "4" } },
  turns,
};

test("what is exported is imported: all versions, choices, tokens, calls, times and settings", () => {
  const text = exportedText([filed, filed]);
  const read = readFile(text, 0);
  expect(read.map(({ record }) => record)).toEqual([filed.record, filed.record]);
  expect(JSON.parse(exportedText(read))).toEqual(JSON.parse(text));
  const tree = new TurnTree();
  expect(tree.addAll(read[0]?.turns ?? [], filed.record.shown)).toEqual([]);
  expect(tree.path.map(({ id }) => id)).toEqual(["1", "2", "4"]);
  const answer = tree.get("2");
  if (answer?.kind !== "answer") throw new Error("There is no answer.");
  expect(answer.answer.firstAfterMs).toBe(10);
  expect(answer.answer.choices[0]?.text.chunks[0]?.tokens[0]?.top).toEqual([
    { token: " ten", logprob: -0.5, bytes: null },
  ]);
});

test("OpenAI's messages are imported and sent again as they were", () => {
  const messages = [
    { role: "system", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "see" },
        { type: "image_url", image_url: { url: image } },
      ],
    },
    {
      role: "assistant",
      content: null,
      tool_calls: [
        { id: "c1", type: "function", function: { name: "count", arguments: '{"n":7}' } },
        { id: "c2", type: "function", function: { name: "count", arguments: "{}" } },
      ],
    },
    { role: "tool", tool_call_id: "c1", content: "seven" },
    { role: "tool", tool_call_id: "c2", content: "none" },
    { role: "assistant", content: "It is seven." },
    { role: "user", content: "Thanks\nand bye" },
  ];
  for (const file of [messages, { model: "m", messages, stream: true }]) {
    const [read] = readFile(JSON.stringify(file), 5);
    expect(read?.record.title).toBe("see");
    expect(messagesOf(read?.turns ?? [])).toEqual(messages);
    expect(new TurnTree().addAll(read?.turns ?? [])).toEqual([]);
  }
});

test.each([
  ["", /^The file is not valid JSON: /],
  [
    "7",
    'The file: expected an object with "format": "truewire/conversations", a list of messages, or an object with "messages", found 7',
  ],
  ["[]", "messages: expected at least one message, found an empty list"],
  [
    '[{"role":"user","content":"x"},{"role":"bot","content":"x"}]',
    'messages[1].role: expected "system", "developer", "user", "assistant" or "tool", found "bot"',
  ],
  [
    '[{"role":"user","content":[{"type":"text","text":"x"},{"type":"video"}]}]',
    'messages[0].content[1].type: expected "text", "image_url" or "file", found "video"',
  ],
  [
    '[{"role":"user","content":[{"type":"image_url","image_url":{"url":"javascript:alert(1)"}}]}]',
    'messages[0].content[0].image_url.url: expected a data: URL of an image, or a URL that begins with https://, found "javascript:alert(1)"',
  ],
  [
    '[{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":{}}}]}]',
    "messages[0].tool_calls[0].function.arguments: expected a string, found an object",
  ],
  [
    '[{"role":"user","content":{"toString":1}}]',
    "messages[0].content: expected a string or a list of parts, found an object",
  ],
  [
    '[{"__proto__":{"role":"user"}}]',
    'messages[0].role: expected "system", "developer", "user", "assistant" or "tool", found nothing',
  ],
  [changed((file) => (file.version = 2)), "version: expected 1, found 2"],
  [
    changed((file) => Object.assign(file, { conversations: [] })),
    "conversations: expected at least one conversation, found an empty list",
  ],
  [
    changed((file) => (file.conversations[0].turns[3].text = null)),
    "conversations[0].turns[3].text: expected a string, found null",
  ],
  [
    changed((file) => (file.conversations[0].turns[0].id = "a/b")),
    'conversations[0].turns[0].id: expected an id of 1 to 100 characters without /, found "a/b"',
  ],
  [
    changed((file) => (file.conversations[0].turns[4].id = "1")),
    'conversations[0].turns[4].id: expected an id that no other turn has, found "1"',
  ],
  [
    changed((file) => (file.conversations[0].turns[0].parent = "4")),
    'conversations[0].turns[0].parent: expected "", the id of a turn, or the id of an answer with the number of its choice ("ID/0"), found "4"',
  ],
  [
    changed((file) => (file.conversations[0].turns[1].chosen = 2)),
    "conversations[0].turns[1].chosen: expected a number below 2, the number of choices, found 2",
  ],
  [
    changed((file) => (file.conversations[0].turns[1].choices[0].text[0].tokens[0].logprob = "x")),
    'conversations[0].turns[1].choices[0].text[0].tokens[0].logprob: expected a number or null, found "x"',
  ],
  [
    changed((file) => (file.conversations[0].shown = { "": 7 })),
    'conversations[0].shown[""]: expected a string, found 7',
  ],
])("a damaged file is refused, and its place named: %#", (text, message) => {
  expect(() => readFile(text, 0)).toThrow(message);
});

test("an object that is nested too deeply is refused", () => {
  const deep = `${'{"a":'.repeat(200_000)}1${"}".repeat(200_000)}`;
  const text = exportedText([filed]).replace('"temperature": 0.3', `"temperature": ${deep}`);
  expect(() => readFile(text, 0)).toThrow(
    /conversations\[0\]\.turns\[1\]\.request: expected an object that is not nested|not valid JSON/,
  );
});

test("for every change of one value: a file is read, or refused in words", () => {
  const file: unknown = JSON.parse(exportedText([filed]));
  const paths: (readonly (string | number)[])[] = [];
  const visit = (value: unknown, path: readonly (string | number)[]): void => {
    paths.push(path);
    if (typeof value !== "object" || value === null) return;
    for (const [name, member] of Object.entries(value)) visit(member, [...path, name]);
  };
  visit(file, []);
  const values = fc.oneof(fc.jsonValue(), fc.constantFrom("", "1", "2/0", "2/1", -1, 1e300, null, [], {}));
  fc.assert(
    fc.property(fc.constantFrom(...paths.slice(1)), values, (path, value) => {
      const changed: unknown = structuredClone(file);
      let at = changed as Record<string | number, unknown>;
      for (const name of path.slice(0, -1)) at = at[name] as typeof at;
      at[path.at(-1) ?? ""] = value;
      let read: readonly FiledConversation[] = [];
      try {
        read = readFile(JSON.stringify(changed), 0);
      } catch (error) {
        expect((error as Error).message).toMatch(/: expected .*, found /s);
      }
      for (const { record, turns } of read) {
        const tree = new TurnTree();
        expect(tree.addAll(turns, record.shown)).toEqual([]);
        messagesOf(tree.path);
        exportedText([{ record, turns }]);
      }
    }),
    { numRuns: 2000 },
  );
});

interface FiledTurn {
  id: string;
  parent: string;
  text: unknown;
  chosen: number;
  choices: [{ text: [{ tokens: [{ logprob: unknown }] }] }];
}

/** An exported file with one conversation of five turns. */
interface File {
  version: number;
  conversations: [{ shown: unknown; turns: [FiledTurn, FiledTurn, FiledTurn, FiledTurn, FiledTurn] }];
}

/** The exported file after a change. */
function changed(change: (file: File) => void): string {
  const file = JSON.parse(exportedText([filed])) as File;
  change(file);
  return JSON.stringify(file);
}
