import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Message } from "../../wire/core/message.ts";
import { matchCalls } from "./conversation.ts";

const asks = (ids: readonly string[]): Message => ({
  role: "assistant",
  content: ids.map((id, at) => ({ type: "tool-call", id, name: `f${at}`, arguments: "{}" })),
});
const answers = (toolCallId: string): Message => ({ role: "tool", content: "", toolCallId });

/** The rule: of the open calls, the first one with the id, else the first one. */
function slowly(calls: readonly string[], results: readonly string[]): (string | undefined)[] {
  const open = calls.map((id, at) => ({ id, name: `f${at}` }));
  return results.map((id) => {
    const named = open.findIndex((call) => call.id === id);
    return open.splice(Math.max(named, 0), 1)[0]?.name;
  });
}

const ids = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 12 });

describe("matching results with calls", () => {
  test("by id, else the next open call", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 12 }), ids, (calls, results) => {
        const matched = matchCalls([asks(calls), ...results.map(answers)], "any", []);
        const names = results.map((_, at) => matched.answered(at + 1).name);
        expect(names).toEqual(slowly(calls, results));
      }),
    );
  });

  test("a result without a call causes a warning", () => {
    const warnings: string[] = [];
    matchCalls([asks(["a"]), answers("b")], "any", warnings);
    expect(warnings).toEqual(["messages[1]: no open call has the id b; taken as the next call's result."]);
  });

  // 5,000 results of 4,500 calls that nobody asked for were searched for in all of them: half a second, in which no request was prepared.
  test.each([
    ["of one id", () => "same"],
    ["of no known id", (at: number) => `other${at}`],
    ["in the opposite order", (at: number) => `c${4999 - at}`],
  ])("thousands of results %s look at each call a few times", (_, idOf) => {
    let looks = 0;
    const calls = Array.from({ length: 5000 }, (__, at) => ({
      type: "tool-call" as const,
      name: "f",
      arguments: "{}",
      get id() {
        looks++;
        return idOf(0) === "same" ? "same" : `c${at}`;
      },
    }));
    const results = calls.map((__, at) => answers(idOf(at)));
    matchCalls([{ role: "assistant", content: calls }, ...results], "any", []);
    expect(looks).toBeLessThan(20 * calls.length);
  });
});

describe("ids of nine characters", () => {
  test("are the end of an id, or the first number that is free", () => {
    const { ofCalls } = matchCalls([asks(["call_abc123456789", "x000000000", "y000000000", "z000000000"])], "nine", []);
    expect(ofCalls(0)).toEqual(["123456789", "000000000", "000000001", "000000002"]);
  });
});
