import fc from "fast-check";
import { expect, test } from "vitest";
import { assistantContent } from "../../wire/core/message.ts";
import type { AssistantPart, Content, ContentPart, Message, ToolCall } from "../../wire/core/message.ts";
import { fromOpenAiMessages, toOpenAiMessages, readStopReason, writeStopReason } from "./openai-messages.ts";

const text: fc.Arbitrary<ContentPart> = fc.record({ type: fc.constant("text"), text: fc.string() });
const media: fc.Arbitrary<ContentPart> = fc.oneof(
  fc.record(
    { type: fc.constant("image"), url: fc.webUrl(), detail: fc.constantFrom("auto", "low", "high") },
    { requiredKeys: ["type", "url"] },
  ),
  fc.record({ type: fc.constant("audio"), data: fc.base64String(), format: fc.constantFrom("wav", "mp3") }),
  fc.record(
    { type: fc.constant("file"), name: fc.string(), data: fc.string(), id: fc.string() },
    { requiredKeys: ["type"] },
  ),
);
const content = (...parts: fc.Arbitrary<ContentPart>[]): fc.Arbitrary<Content> =>
  fc.oneof(fc.string(), fc.array(fc.oneof(...parts), { minLength: 1, maxLength: 3 }));
const name = fc.stringMatching(/^[a-z]{1,5}$/);
const call: fc.Arbitrary<ToolCall> = fc.oneof(
  fc.record({ id: fc.uuid(), name, arguments: fc.oneof(fc.json(), fc.string()) }),
  fc.record({ id: fc.uuid(), name, arguments: fc.string(), kind: fc.constant("custom" as const) }),
);
const thought: fc.Arbitrary<AssistantPart> = fc.record({ type: fc.constant("reasoning"), text: fc.string() });
const spokenText: fc.Arbitrary<AssistantPart> = fc.record({ type: fc.constant("text"), text: fc.string() });
const refusal: fc.Arbitrary<AssistantPart> = fc.record({ type: fc.constant("refusal"), refusal: fc.string() });
const told: fc.Arbitrary<Message> = fc.oneof(
  fc.record(
    { role: fc.constantFrom("system" as const, "developer" as const), content: content(text), name },
    { requiredKeys: ["role", "content"] },
  ),
  fc.record(
    { role: fc.constant("user" as const), content: content(text, media), name },
    { requiredKeys: ["role", "content"] },
  ),
  fc
    .tuple(fc.option(thought), fc.array(spokenText, { minLength: 1, maxLength: 3 }), fc.option(refusal))
    .map(([thinking, texts, refused]): Message => {
      const parts = [...(thinking ? [thinking] : []), ...texts, ...(refused ? [refused] : [])];
      return { role: "assistant", content: assistantContent(parts) };
    }),
);
/** A turn of calls with the result of each. */
const turn = fc
  .array(call, { minLength: 1, maxLength: 3 })
  .map((calls): Message[] => [
    { role: "assistant", content: calls.map((made) => ({ type: "tool-call", ...made })) },
    ...calls.map(({ id, name }): Message => ({ role: "tool", content: "result", toolCallId: id, name })),
  ]);
const conversation = fc
  .array(
    fc.oneof(
      told.map((message) => [message]),
      turn,
    ),
    { maxLength: 5 },
  )
  .map((turns) => turns.flat());

test("a conversation survives the way to OpenAI's form and back: names, parts, calls with their own text of arguments", () => {
  fc.assert(
    fc.property(conversation, (messages) => {
      const written: unknown[] = JSON.parse(JSON.stringify(toOpenAiMessages(messages)));
      expect(fromOpenAiMessages(written)).toEqual(messages);
    }),
  );
});

test("and the other way round", () => {
  const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: [{ type: "image_url", image_url: { url: "https://example.com/a.png", detail: "low" } }] },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: '{"n":1.0}' } }],
    },
    { role: "tool", tool_call_id: "call_1", content: "" },
  ];
  expect(toOpenAiMessages(fromOpenAiMessages(messages))).toEqual(messages);
});

test("legacy calls and results are written as such, and read", () => {
  const messages: Message[] = [
    {
      role: "assistant",
      content: [{ type: "tool-call", id: "call_000000000000000000000000", name: "f", arguments: "{}" }],
    },
    { role: "tool", content: "1", toolCallId: "call_000000000000000000000000", name: "f" },
  ];
  const written = toOpenAiMessages(messages, { legacy: true });
  expect(written).toEqual([
    { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
    { role: "function", name: "f", content: "1" },
  ]);
  expect(fromOpenAiMessages(written)).toEqual(messages);
});

test("a role that is unknown or missing is an error with its path", () => {
  const failure = (message: unknown): unknown => {
    try {
      return fromOpenAiMessages([{ role: "user", content: "" }, message]);
    } catch (error) {
      return (error as { readonly failure: unknown }).failure;
    }
  };
  expect(failure({ role: "robot", content: "" })).toMatchObject({
    message: "Unsupported message role: robot",
    param: "messages[1].role",
    status: 400,
  });
  expect(failure({ content: "" })).toMatchObject({ param: "messages[1].role", status: 400 });
  expect(failure(null)).toMatchObject({ param: "messages[1]", status: 400 });
});

test("a result without its call passes, and is refused when strict", () => {
  const orphan = [{ role: "tool", tool_call_id: "call_1", content: "1" }];
  expect(fromOpenAiMessages(orphan)).toEqual([{ role: "tool", content: "1", toolCallId: "call_1" }]);
  expect(() => fromOpenAiMessages(orphan, { strict: true })).toThrow("preceeding message");
});

test.each(["stop", "tool_calls", "length", "content_filter"] as const)(
  "%s is read and written back the same",
  (word) => {
    const reason = readStopReason(word);
    expect(reason && writeStopReason(reason)).toBe(word);
  },
);

test.each([
  ["stop", "end-of-turn"],
  ["eos", "end-of-turn"],
  ["eom", "end-of-message"],
  ["<|eom_id|>", "end-of-message"],
  ["length", "out-of-tokens"],
  ["MAX_TOKENS", "out-of-tokens"],
  ["tool_calls", "end-of-message"],
  ["function_call", "end-of-message"],
  ["content_filter", "content-filter"],
  ["error", "failed"],
  ["whatever", "end-of-turn"],
  ["", null],
  [null, null],
  [undefined, null],
] as const)("%j is %j", (word, reason) => {
  expect(readStopReason(word)).toBe(reason);
});

test("tool_calls is said exactly where there are calls, unless the answer was cut", () => {
  expect(writeStopReason("end-of-message", false)).toBe("stop");
  expect(writeStopReason("end-of-turn", true)).toBe("tool_calls");
  expect(writeStopReason("out-of-tokens", true)).toBe("length");
  expect(writeStopReason("failed")).toBeNull();
});
