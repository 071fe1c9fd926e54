import { expect, test } from "vitest";
import type { Message } from "../../wire/core/message.ts";
import { inputText, inputTextsOf, parametersOf, readableMessages, refusedPlace } from "./readable-request.ts";

function calling(...ids: readonly string[]): Message {
  return { role: "assistant", content: ids.map((id) => ({ type: "tool-call", id, name: "look", arguments: "{}" })) };
}

test("results stand at their calls, also where a client uses the same id again", () => {
  const result = (toolCallId: string, content: string): Message => ({ role: "tool", toolCallId, content });
  const messages = [
    calling("a", "b"),
    result("b", "second"),
    result("a", "first"),
    calling("a"),
    result("a", "third"),
    result("a", "once more"),
    result("gone", "lost"),
  ];
  const shown = readableMessages(messages).map(({ message, path, results }) => [
    path,
    message.role,
    [...results].map(([id, { content }]) => `${id}: ${String(content)}`),
  ]);
  expect(shown).toEqual([
    ["messages[0]", "assistant", ["b: second", "a: first"]],
    ["messages[3]", "assistant", ["a: third"]],
    ["messages[5]", "tool", []],
    ["messages[6]", "tool", []],
  ]);
});

test("parameters are what is not shown as messages, tools or texts", () => {
  const body = { model: "m", messages: [], system: "s", tools: [], temperature: 0, stop: null };
  expect(parametersOf(body)).toEqual([
    ["model", "m"],
    ["temperature", 0],
    ["stop", null],
  ]);
  expect(parametersOf(["no", "object"])).toEqual([]);
});

test("the texts of embeddings and rankings have their paths", () => {
  const texts = (body: unknown): unknown => inputTextsOf(body).map((one) => ({ path: one.path, text: inputText(one) }));
  expect(texts({ input: "one" })).toEqual([{ path: "input", text: "one" }]);
  expect(texts({ query: "q", documents: [{ text: "a" }, "b"] })).toEqual([
    { path: "query", text: "q" },
    { path: "documents[0]", text: "a" },
    { path: "documents[1]", text: "b" },
  ]);
  expect(texts({ input: [1, 2] })).toEqual([{ path: "input", text: "[\n  1,\n  2\n]" }]);
});

test("the place of an error is found in the form of each API, and hostile errors have none", () => {
  const place = (error: unknown): string => refusedPlace({ error }, { messages: [] });
  expect(place({ message: "no", param: "messages[1].role" })).toBe("messages[1].role");
  expect(place({ type: "x", message: "messages.0.role: Input should be" })).toBe("messages.0.role");
  expect(place("Invalid value for 'messages[0].role': expected")).toBe("messages[0].role");
  expect(place({ message: "The model 'a.b' is not there: no" })).toBe("");
  expect(place({ message: "nothing" })).toBe("");
  expect([place({ message: { toString: 1 } }), place(7), refusedPlace(null, []), refusedPlace([], null)]).toEqual([
    "",
    "",
    "",
    "",
  ]);
});
