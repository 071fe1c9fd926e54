import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { accumulate } from "../../core/accumulate.ts";
import type { Generation } from "../../core/accumulate.ts";
import { chatReader } from "../chat/read.ts";
import { MessageReader } from "../messages/read.ts";
import { OllamaReader } from "../ollama/read.ts";
import type { AnswerReaderOptions, EventReader } from "../source-port.ts";

type Members = Readonly<Record<string, unknown>>;
interface Read extends Generation {
  readonly repairs: readonly string[];
}

function readWith(reader: EventReader, input: string | object): Read {
  const events = typeof input === "string" ? [...reader.push(input), ...reader.end()] : reader.readBody(input);
  return { ...accumulate(events), repairs: reader.repairs.list().map(({ id }) => id) };
}

const newCallId = (): string => "call_made";
const readChat = (input: string | object, options: Partial<AnswerReaderOptions> = {}): Read =>
  readWith(chatReader({ newCallId, ...options }), input);

const envelope = { id: "c", object: "chat.completion.chunk", created: 1700000000, model: "m" };
const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (index: number, delta: Members, reason: string | null = null): string =>
  event({ ...envelope, choices: [{ index, delta, finish_reason: reason }] });
const done = "data: [DONE]\n\n";
const body = (...choices: readonly Members[]): object => ({ ...envelope, object: "chat.completion", choices });
const whole = (index: number, content: unknown, reason: string): Members => ({
  index,
  message: { role: "assistant", content },
  finish_reason: reason,
});

/**
 * The whole text was replaced by an error of 502, and agents repeated the request: our tests had only asserted that announced calls must
 * come, not what a server means that announces them whenever a request has tools.
 */
describe("calls are announced, and none comes", () => {
  const text = chunk(0, { role: "assistant", content: "Six " }) + chunk(0, { content: "shelves.", tool_calls: null });
  const chats: [string, string | object][] = [
    ["streamed", text + chunk(0, { tool_calls: [] }, "tool_calls") + done],
    ["streamed, in the legacy form", text + chunk(0, {}, "function_call") + done],
    ["streamed, by another name", text + chunk(0, {}, "tool_use") + done],
    ["whole", body({ ...whole(0, "Six shelves.", "tool_calls") })],
  ];
  test.each(chats)("a text is the whole answer: %s", (_, input) => {
    const { choices, end, repairs } = readChat(input);
    expect(end.kind).toBe("done");
    expect(choices[0]).toMatchObject({ text: "Six shelves.", toolCalls: [], finish: { reason: "stop" } });
    expect(repairs).toContain("finish-without-calls");
  });

  test("a text whose beginning is blank", () => {
    const blank = chunk(0, { role: "assistant", content: "" }) + chunk(0, { content: "\n" });
    const rest = chunk(0, { content: "Six" }) + chunk(0, { content: " shelves." });
    const { choices, end } = readChat(blank + rest + chunk(0, {}, "tool_calls") + done);
    expect(end.kind).toBe("done");
    expect(choices[0]).toMatchObject({ text: "\nSix shelves.", finish: { reason: "stop" } });
  });

  test.each<[string, string | object]>([
    ["no text", chunk(0, { role: "assistant", content: "" }) + chunk(0, {}, "tool_calls") + done],
    ["a blank text", chunk(0, { role: "assistant", content: "\n\n" }) + chunk(0, {}, "tool_calls") + done],
    ["reasoning only", chunk(0, { role: "assistant", reasoning_content: "Hm." }) + chunk(0, {}, "tool_calls") + done],
    ["no text, whole", body(whole(0, null, "tool_calls"))],
  ])("without a text it is the server's failure: %s", (_, input) => {
    expect(readChat(input).end).toMatchObject({ kind: "upstream-error", failure: { status: 502 } });
  });

  test("a stream of Ollama", () => {
    const head = { model: "m", created_at: "2026-08-22T01:48:22Z" };
    const lines = (content: string): string =>
      [
        { ...head, message: { role: "assistant", content }, done: false },
        { ...head, message: { role: "assistant", content: "" }, done: true, done_reason: "tool_calls" },
      ]
        .map((line) => `${JSON.stringify(line)}\n`)
        .join("");
    const read = readWith(new OllamaReader({ newCallId }), lines("Six."));
    expect(read).toMatchObject({ end: { kind: "done" }, choices: [{ text: "Six.", finish: { reason: "stop" } }] });
    expect(read.repairs).toContain("finish-without-calls");
    expect(readWith(new OllamaReader({ newCallId }), lines("")).end.kind).toBe("upstream-error");
  });

  // Anthropic's own messages may be empty, so that a client of this API does not repeat them.
  test.each([[[]], [[{ type: "text", text: "Six." }]]])("a message with the content %j", (content) => {
    const usage = { input_tokens: 20, output_tokens: 9 };
    const message = { id: "msg_1", type: "message", role: "assistant", model: "m", stop_sequence: null, usage };
    const read = readWith(new MessageReader({ newCallId }), { ...message, content, stop_reason: "tool_use" });
    expect(read.end.kind).toBe("done");
    expect(read.choices[0]?.finish?.reason).toBe("stop");
    expect(read.repairs).toContain("finish-without-calls");
  });
});

/** The second end was dropped as a repetition, and the second choice had none: every test sent each end under its own index. */
describe("several choices, whose ends have one index", () => {
  const begun = chunk(0, { role: "assistant", content: "First" }) + chunk(1, { role: "assistant", content: "Second" });
  const reasons = ({ choices }: Read): unknown[] => choices.map(({ text, finish }) => [text, finish?.reason]);

  test("the second end belongs to the second choice", () => {
    const read = readChat(begun + chunk(0, {}, "stop") + chunk(0, {}, "length"), { choices: 2 });
    expect(read.end.kind).toBe("done");
    expect(reasons(read)).toEqual([
      ["First", "stop"],
      ["Second", "length"],
    ]);
    expect(read.repairs).toContain("repeated-finish");
  });

  test("an end of its own replaces it", () => {
    const ends = chunk(0, {}, "stop") + chunk(0, {}, "stop") + chunk(1, {}, "length");
    expect(reasons(readChat(begun + ends + done, { choices: 2 }))).toEqual([
      ["First", "stop"],
      ["Second", "length"],
    ]);
  });

  test("one choice after another under one index", () => {
    const choice = (text: string, reason: string): string =>
      chunk(0, { role: "assistant", content: text.slice(0, 2) }) +
      chunk(0, { content: text.slice(2, 4) }) +
      chunk(0, { content: text.slice(4) }) +
      chunk(0, {}, reason);
    const read = readChat(choice("First", "stop") + choice("Second", "length") + done, { choices: 2 });
    expect(reasons(read)).toEqual([
      ["First", "stop"],
      ["Second", "length"],
    ]);
  });

  test("late text of the only choice stays with it", () => {
    const stream = chunk(0, { role: "assistant", content: "First" }) + chunk(0, {}, "stop");
    const late = chunk(0, { role: "assistant", content: ", late" });
    expect(reasons(readChat(stream + late + done, { choices: 1 }))).toEqual([["First, late", "stop"]]);
  });

  test("whole choices with one index", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("stop", "length"), { minLength: 1, maxLength: 5 }), (ends) => {
        const choices = ends.map((reason, at) => whole(0, `text ${at}`, reason));
        const read = readChat(body(...choices), { choices: ends.length });
        expect(reasons(read)).toEqual(ends.map((reason, at) => [`text ${at}`, reason]));
      }),
    );
  });
});
