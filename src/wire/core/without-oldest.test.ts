import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assistantCalls } from "./message.ts";
import type { GenerationFailure } from "./events.ts";
import type { Message } from "./message.ts";
import type { GenerationRequest } from "./request.ts";
import { withoutOldest } from "./estimate-tokens.ts";

const hundred = "x".repeat(400);
const system: Message = { role: "system", content: hundred };
const user = (content: string): Message => ({ role: "user", content });
const assistant = (content: string): Message => ({ role: "assistant", content });
const call = (id: string): Message => ({
  role: "assistant",
  content: [{ type: "tool-call", id, name: "f", arguments: "{}" }],
});
const result = (toolCallId: string): Message => ({ role: "tool", content: hundred, toolCallId });

function requestOf(messages: readonly Message[]): GenerationRequest {
  return {
    id: "req_1",
    model: "m",
    prompt: { kind: "chat", messages, template: {} },
    sampling: {},
    limits: { overflow: "drop-oldest" },
    wantsUsage: true,
    stream: false,
    extra: {},
    passthrough: { dialect: "responses", body: {} },
  };
}

function refused(asked: number, most: number): GenerationFailure {
  return { kind: "context-overflow", message: "Too long.", status: 400, tokens: { asked, most } };
}

function left(messages: readonly Message[], failure: GenerationFailure): readonly Message[] | null {
  const shorter = withoutOldest(requestOf(messages), failure);
  return shorter?.prompt.kind === "chat" ? shorter.prompt.messages : null;
}

describe("what is left of a conversation that is too long", () => {
  const turns = ["a", "b", "c", "d"].flatMap((name) => [user(`${name}${hundred}`), assistant(hundred)]);
  const last = user("And now?");

  test("the oldest turns go, instructions and the last question stay", () => {
    const messages = [system, ...turns.slice(0, 4), { ...system, role: "developer" as const }, ...turns.slice(4), last];
    // The prompt has 1,020 tokens by the estimate, and a turn 204: 675 tokens may stay.
    expect(left(messages, refused(1000, 900))).toEqual([system, messages[5], ...turns.slice(4), last]);
    expect(left(messages, refused(1000, 300))).toEqual([system, messages[5], last]);
  });

  test("where the failure does not say how much is too much, at least half goes", () => {
    const { tokens: _, ...unknown } = refused(1, 1);
    expect(left([...turns, last], unknown)).toEqual([...turns.slice(6), last]);
  });

  test("of one long turn, the oldest steps go, with the results of their calls", () => {
    const messages = [user("Go"), call("1"), result("1"), call("2"), result("2"), call("3"), result("3")];
    expect(left(messages, refused(1000, 1000))).toEqual([user("Go"), ...messages.slice(3)]);
    expect(left(messages, refused(1000, 100))).toEqual([user("Go"), ...messages.slice(5)]);
  });

  test("null where nothing can go: the refusal stands", () => {
    expect(left([system, last], refused(1000, 10))).toBeNull();
    expect(left([user("Go"), call("1"), result("1")], refused(1000, 10))).toBeNull();
    const text: GenerationRequest = { ...requestOf([]), prompt: { kind: "text", prompts: [hundred] } };
    expect(withoutOldest(text, refused(1000, 10))).toBeNull();
  });

  test("the client's own JSON, which still has all messages, does not go along", () => {
    expect(withoutOldest(requestOf([...turns, last]), refused(1000, 500))).not.toHaveProperty("passthrough");
  });
});

test("for any conversation: attempts end, and what is left is in order, with every result behind its call", () => {
  const turn = fc
    .tuple(fc.lorem(), fc.nat(3), fc.boolean())
    .map(([text, steps, answers]): Message[] => [
      user(text),
      ...Array.from({ length: steps }, (_, step) => [call(`${step}`), result(`${step}`)]).flat(),
      ...(answers ? [assistant(text)] : []),
    ]);
  fc.assert(
    fc.property(
      fc.array(turn, { maxLength: 8 }),
      fc.boolean(),
      fc.integer({ min: 10, max: 2000 }),
      (all, leads, most) => {
        let messages: readonly Message[] = [...(leads ? [system] : []), ...all.flat()];
        const first = messages;
        for (let attempt = 0; ; attempt++) {
          const next = left(messages, refused(most + 1, most));
          if (next === null) break;
          expect(next.length).toBeLessThan(messages.length);
          messages = next;
        }
        expect(first.filter((message) => messages.includes(message))).toEqual(messages);
        expect(messages.at(-1)).toBe(first.at(-1));
        expect(messages.includes(system)).toBe(leads);
        for (const [index, message] of messages.entries()) {
          if (message.role !== "tool") continue;
          const before = messages[index - 1];
          expect(before?.role === "assistant" && assistantCalls(before)[0]?.id).toBe(message.toolCallId);
        }
        const begins = messages.find(({ role }) => role !== "system");
        if (begins) expect(begins.role).toBe("user");
      },
    ),
  );
});
