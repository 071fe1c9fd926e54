import { describe, expect, test } from "vitest";
import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import { exact, lean } from "../profile.ts";
import { chatReader } from "./read.ts";
import { writeChatResponse } from "./write-body.ts";
import { writeChatMessages } from "./write-messages.ts";
import { ChatStreamWriter } from "./write-stream.ts";

/* What a server sends with an answer and demands back with the next request. */

type Members = Readonly<Record<string, unknown>>;
const envelope = { id: "c", object: "chat.completion.chunk", created: 1700000000, model: "m" };
const chunk = (delta: Members, reason: string | null = null): string =>
  `data: ${JSON.stringify({ ...envelope, choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
const done = "data: [DONE]\n\n";

function read(input: string | object): GenerationEvent[] {
  const reader = chatReader({ newCallId: () => "call_made" });
  return typeof input === "string" ? [...reader.push(input), ...reader.end()] : reader.readBody(input);
}

function context(profile: typeof lean, passExtra?: boolean | readonly string[]): ChoicesContext {
  const requested = {
    stream: true,
    includeUsage: false,
    logprobs: false,
    namedToolChoice: false,
    legacyFunctions: false,
    includeTimings: false,
  };
  const settings = passExtra === undefined ? {} : { passExtra };
  return { profile, requested, id: "chatcmpl-1", created: 1700000000, model: "m", settings, random: () => 0 };
}

/** Agents over Gemini 3 failed at the second turn ("missing a `thought_signature`"): members of calls were dropped, and no test had any. */
describe("Gemini's signature of a call", () => {
  const signature = { google: { thought_signature: "dGhvdWdodC1vbmU=" } };
  const call = {
    extra_content: signature,
    id: "call_771",
    type: "function",
    function: { name: "find_book", arguments: '{"title":"Ink"}' },
    vendor: 7,
  };
  const message = { role: "assistant", content: null, tool_calls: [call, { ...call, id: "call_772" }] };
  const answers: [string, string | object][] = [
    [
      "streamed",
      chunk({ role: "assistant", tool_calls: [call] }) +
        chunk({ tool_calls: [{ ...call, id: "call_772" }] }) +
        chunk({ role: "assistant", content: "" }, "stop") +
        done,
    ],
    ["whole", { ...envelope, choices: [{ index: 0, message, finish_reason: "stop" }] }],
  ];

  test.each(answers)("reaches a chat client with its call, and other members as passExtra says: %s", (_, input) => {
    const events = read(input);
    for (const profile of [lean, exact]) {
      for (const passExtra of [undefined, ["vendor"], true]) {
        const own = context(profile, passExtra);
        const texts = [new ChatStreamWriter(own).write(events), writeChatResponse(accumulate(events), own)];
        for (const text of texts.map((one) =>
          one.replaceAll(/\n *|: (?=[{"\d])/g, (space) => (space === ": " ? ":" : "")),
        )) {
          expect(text.split(JSON.stringify({ extra_content: signature }).slice(1, -1))).toHaveLength(3);
          expect(text.includes('"vendor":7')).toBe(passExtra !== undefined);
        }
      }
    }
  });
});

/** Members that came after a call's start were dropped: no test sent a call in more than one chunk with members in a later one. */
test("members of a call that come after its start reach a chat client, too", () => {
  const extra_content = { google: { thought_signature: "bGF0ZQ==" } };
  const first = { index: 0, id: "a", type: "function", function: { name: "f", arguments: '{"x"' }, vendor: 1 };
  const stream =
    chunk({ role: "assistant", tool_calls: [first] }) +
    chunk({ tool_calls: [{ index: 0, function: { arguments: ":1}" } }] }) +
    chunk({ tool_calls: [{ index: 0, extra_content, other: 2 }] }) +
    chunk({ tool_calls: [{ ...first, index: 1, id: "b", function: { name: "f", arguments: "{}" } }] }) +
    chunk({}, "tool_calls") +
    done;
  const events = read(stream);
  const [one, two] = accumulate(events).choices[0]?.toolCalls ?? [];
  expect(one).toMatchObject({
    arguments: '{"x":1}',
    status: "succeeded",
    state: { kind: "call", value: { extra_content } },
  });
  expect(one?.native?.value).toEqual({ vendor: 1, other: 2 });
  expect(two?.state).toBeUndefined();
  for (const [passExtra, others] of [
    [undefined, false],
    [true, true],
  ] as const) {
    const own = context(lean, passExtra);
    for (const text of [new ChatStreamWriter(own).write(events), writeChatResponse(accumulate(events), own)]) {
      expect(text.split("bGF0ZQ==")).toHaveLength(2);
      expect(text.includes('"other":2')).toBe(others);
    }
  }
});

/** A Messages client got a signature of this server in place of Anthropic's: the member was not read, as no server of ours had sent it. */
describe("LiteLLM's thinking_blocks", () => {
  const parts = (input: string | object): unknown[] =>
    (accumulate(read(input)).choices[0]?.parts ?? []).map((part) =>
      part.type === "reasoning" ? [part.text, part.state?.value] : part.type,
    );
  const block = (thinking: string, signature = ""): Members => ({ type: "thinking", thinking, signature });
  const delta = (reasoning: string, ...blocks: readonly Members[]): string =>
    chunk({ role: "assistant", content: "", reasoning_content: reasoning, thinking_blocks: blocks });

  test("the signature ends the reasoning of a stream, whose text it repeats", () => {
    const stream =
      delta("Shelves ", block("Shelves ")) +
      delta("first.", block("first.")) +
      delta("", block("Shelves first.", "sig"));
    expect(parts(stream + chunk({ content: "Six." }, "stop") + done)).toEqual([["Shelves first.", "sig"], "text"]);
  });

  test("encrypted reasoning, and further reasoning after it", () => {
    const redacted = { type: "redacted_thinking", data: "secret" };
    const stream =
      delta("A", block("A")) +
      delta("", block("A", "one"), redacted) +
      delta("B", block("B")) +
      delta("", block("B", "two"));
    const expected = [["A", "one"], ["", "secret"], ["B", "two"], "text"];
    expect(parts(stream + chunk({ content: "Six." }, "stop") + done)).toEqual(expected);
    const message = {
      role: "assistant",
      content: "Six.",
      reasoning_content: "AB",
      thinking_blocks: [block("A", "one"), redacted, block("B", "two")],
    };
    expect(parts({ ...envelope, choices: [{ index: 0, message, finish_reason: "stop" }] })).toEqual(expected);
  });

  test("a signature after the text is not one of the text", () => {
    const stream = delta("A", block("A")) + chunk({ content: "Six." }) + delta("", block("A", "late"));
    expect(parts(stream + chunk({}, "stop") + done)).toEqual([["A", undefined], "text"]);
  });

  test("without signatures the reasoning is read once", () => {
    expect(parts(delta("A", block("A")) + chunk({ content: "Six." }, "stop") + done)).toEqual([
      ["A", undefined],
      "text",
    ]);
  });
});

/** A model took the error of a tool for its result, where the text does not say that it is one: chat has no `is_error`. */
test("the result of a tool that failed says so in its text", () => {
  const tool = { role: "tool", toolCallId: "a", isError: true } as const;
  const written = (
    content: Parameters<typeof writeChatMessages>[0][number]["content"] & (string | readonly object[]),
  ): unknown => writeChatMessages([{ ...tool, content: content as string }])[0]?.["content"];
  expect(written("no such file")).toBe("Error: no such file");
  expect(written("")).toBe("Error");
  expect(written("Error: no such file")).toBe("Error: no such file");
  expect(written("<tool_use_error>no such file</tool_use_error>")).toBe(
    "<tool_use_error>no such file</tool_use_error>",
  );
  expect(written([{ type: "text", text: "gone" }])).toEqual([
    { type: "text", text: "Error:" },
    { type: "text", text: "gone" },
  ]);
  expect(writeChatMessages([{ ...tool, isError: false, content: "fine" }])[0]?.["content"]).toBe("fine");
});
