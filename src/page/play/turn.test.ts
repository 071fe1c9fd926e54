import { expect, test } from "vitest";
import { Answer } from "./answer.ts";
import { messagesOf } from "./turn.ts";
import type { Turn } from "./turn.ts";

/** An answer that was thought about, with calls of these tools. */
function answerTurn(id: number, text: string, ...names: readonly string[]): Turn {
  const answer = new Answer(0);
  answer.take({ type: "reasoning-delta", choice: 0, text: `thought ${id}` }, 1);
  if (text !== "") answer.take({ type: "text-delta", choice: 0, text }, 1);
  for (const [index, name] of names.entries()) {
    answer.take({ type: "tool-call-start", choice: 0, index, id: `call_${id}`, name }, 1);
    answer.take({ type: "tool-call-delta", choice: 0, index, arguments: "{}" }, 1);
  }
  return { kind: "answer", ...placed(id), request: { model: "m" }, system: "", answer, chosen: 0 };
}

const placed = (id: number): Pick<Turn, "id" | "parent" | "created"> => ({ id: String(id), parent: "", created: 0 });
const question = (id: number): Turn => ({ kind: "question", ...placed(id), text: `question ${id}`, images: [] });
const results = (id: number): Turn => ({
  kind: "results",
  ...placed(id),
  results: [{ callId: `call_${id - 1}`, name: "f", text: "1" }],
});

/** What goes back of each thought. */
function thoughts(turns: readonly Turn[]): (string | undefined)[] {
  return messagesOf(turns).flatMap((message) => (message.role === "assistant" ? [message.reasoning_content] : []));
}

test("reasoning goes back with the calls that it led to", () => {
  const turns = [question(1), answerTurn(2, "", "f"), results(3), answerTurn(4, "Wait.", "f"), results(5)];
  expect(messagesOf(turns)[1]).toEqual({
    role: "assistant",
    content: null,
    reasoning_content: "thought 2",
    tool_calls: [{ id: "call_2", type: "function", function: { name: "f", arguments: "{}" } }],
  });
  expect(thoughts(turns)).toEqual(["thought 2", "thought 4"]);
});

test("once the next question is asked, none goes back", () => {
  const turns = [question(1), answerTurn(2, "", "f"), results(3), answerTurn(4, "Done."), question(5)];
  expect(thoughts(turns)).toEqual([undefined, undefined]);
  expect(thoughts([...turns, answerTurn(6, "", "f"), results(7)])).toEqual([undefined, undefined, "thought 6"]);
});

test("a final answer's reasoning stays behind", () => {
  expect(thoughts([question(1), answerTurn(2, "Done.")])).toEqual([undefined]);
});
