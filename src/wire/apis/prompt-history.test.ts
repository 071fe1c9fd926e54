import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CacheMiss } from "../core/cache-miss.ts";
import type { Message, Tool } from "../core/message.ts";
import type { GenerationRequest } from "../core/request.ts";
import { runSync } from "../core/steps.ts";
import { outlineRequest, PromptHistory } from "./prompt-history.ts";

const user = (content: string): Message => ({ role: "user", content });
const says = (content: string): Message => ({ role: "assistant", content });
const system = (content: string): Message => ({ role: "system", content });
const rules = "Read a file before you edit it. ".repeat(300);

interface Sent {
  readonly owner?: string;
  readonly tools?: readonly Tool[];
  readonly reasoning?: GenerationRequest["reasoning"];
  readonly cached?: number;
  readonly at?: number;
  readonly server?: string;
}

/** Sends a request of 4,000 prompt tokens. */
function send(history: PromptHistory, messages: readonly Message[], sent: Sent = {}): CacheMiss | null {
  const { cached = 0, at = 0, server = "a", ...more } = sent;
  const request: GenerationRequest = {
    id: "req",
    model: "m",
    prompt: { kind: "chat", messages, template: {} },
    sampling: {},
    limits: {},
    wantsUsage: false,
    stream: true,
    extra: {},
    ...more,
  };
  const outline = runSync(outlineRequest(request));
  if (!outline) throw new Error("no outline");
  return history.sent(request, outline, at, server).missed({ promptTokens: 4000, cachedTokens: cached });
}

const cause = (miss: CacheMiss | null): unknown => miss && [miss.cause, miss.where];

test("a conversation that only grows has no part that changed, however little was cached", () => {
  const content = fc.string({ maxLength: 20 });
  const message = fc.oneof(content.map(user), content.map(says));
  fc.assert(
    fc.property(fc.array(message, { minLength: 1 }), fc.array(message), fc.nat(4000), (start, more, cached) => {
      const history = new PromptHistory();
      send(history, [system(rules), ...start]);
      const miss = send(history, [system(rules), ...start, ...more], { cached });
      if (miss) expect(miss.cause).toBe("not-cached");
      if (cached > 3600) expect(miss).toBeNull();
    }),
  );
});

test("each change has its cause and its place", () => {
  const date = fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true });
  const start = [user("What is in the folder?"), says("Two files.")];
  const change = fc.oneof(
    fc
      .tuple(date, date)
      .map(([one, other]) => ["date", ...[one, other].map((day) => `It is ${day.toISOString()}. ${rules}`)] as const),
    fc.tuple(fc.uuid(), fc.uuid()).map(([one, other]) => ["id", `${one} ${rules}`, `${other} ${rules}`] as const),
    fc
      .tuple(fc.nat(999), fc.nat(999))
      .map(([one, other]) => ["counter", `#${one} ${rules}`, `#${other} ${rules}`] as const),
  );
  fc.assert(
    fc.property(change, ([expected, one, other]) => {
      if (one === other) return;
      const history = new PromptHistory();
      send(history, [system(one), ...start.slice(0, 1)]);
      expect(cause(send(history, [system(other), ...start, user("Which?")]))).toEqual([expected, "messages[0]"]);
    }),
  );
});

describe("the cause", () => {
  const turns = [user("One?"), says("First."), user(`Two? ${rules}`), says("Second."), user("Three?")];
  const after = (messages: readonly Message[], sent: Sent = {}): unknown => {
    const history = new PromptHistory();
    send(history, turns);
    return cause(send(history, messages, sent));
  };

  test("of messages", () => {
    const more = [...turns, says("Third."), user("Four?")];
    expect(after(more.with(1, says("Other.")))).toEqual(["message-changed", "messages[1]"]);
    expect(after(more.slice(2))).toEqual(["messages-dropped", "messages[0]"]);
    expect(after([user("Mind the time."), ...more])).toEqual(["message-inserted", "messages[0]"]);
    const reasoning = { type: "reasoning" as const, text: "Hm." };
    const history = new PromptHistory();
    send(history, turns.with(1, { role: "assistant", content: [reasoning, { type: "text", text: "First." }] }));
    expect(cause(send(history, more))).toEqual(["reasoning-dropped", "messages[1]"]);
  });

  test("of settings, and of other URLs and times", () => {
    expect(after(turns, { reasoning: { effort: "high" } })).toEqual(["template-options", undefined]);
    expect(after(turns, { server: "b" })).toEqual(["other-server", undefined]);
    expect(after(turns, { at: 6 * 60_000, server: "b" })).toEqual(["expired", undefined]);
    expect(after(turns, { at: 4 * 60_000 })).toEqual(["not-cached", undefined]);
  });

  test("of an image", () => {
    const shows = (data: string): Message => ({
      role: "user",
      content: [
        { type: "text", text: rules },
        { type: "image", url: `data:image/png;base64,${data}` },
      ],
    });
    const rest = [says("A cat."), user("Are you sure?")];
    const history = new PromptHistory();
    send(history, [shows("AAAA"), ...rest]);
    const later = [shows("BBBB"), ...rest, says("Yes."), user("Why?")];
    expect(cause(send(history, later))).toEqual(["image-changed", "messages[0]"]);
    // Of a long file, samples are compared.
    send(history, [shows("A".repeat(2 ** 20)), ...rest]);
    expect(send(history, [shows("A".repeat(2 ** 20)), ...rest])?.cause).toBe("not-cached");
    expect(send(history, [shows(`${"A".repeat(2 ** 20)}B`), ...rest])?.cause).toBe("image-changed");
  });

  // The whole prompt counted as missed.
  test("is not a number in the last question", () => {
    const history = new PromptHistory();
    const asks = (number: number): Message[] => [user(`${rules}What is ${number} and ${number}?`)];
    send(history, asks(2));
    expect(send(history, asks(3))).toBeNull();
  });

  test("is not that marks of the cache, or ids of calls, moved", () => {
    const history = new PromptHistory();
    const marked: Message = { role: "user", content: [{ type: "text", text: "One?", cacheMinutes: 5 }] };
    send(history, turns.with(0, marked));
    expect(cause(send(history, turns))).toEqual(["not-cached", undefined]);
  });
});

test("a request is compared only with those of its owner, and no digest contains its text", () => {
  const history = new PromptHistory();
  send(history, [system(`It is 2026-11-22. ${rules}`), user("Hi")], { owner: "ann" });
  expect(send(history, [system(`It is 2026-11-23. ${rules}`), user("Hi")], { owner: "bob" })).toBeNull();
  const request = { prompt: { kind: "chat", messages: [system(rules), user("Swordfish")], template: {} } };
  const json = JSON.stringify(runSync(outlineRequest(request as never)));
  expect(json).not.toMatch(/Swordfish|Read a file/);
});

test("what is remembered is bounded: the oldest requests are forgotten", () => {
  const history = new PromptHistory();
  const conversation = (name: string): Message[] => [system(`${name} ${rules}`), user(`${name}?`)];
  send(history, conversation("first"));
  for (let at = 0; at < 31; at++) send(history, conversation(`other ${at}`));
  expect(send(history, conversation("first"))).toMatchObject({ cause: "not-cached" });
  for (let at = 0; at < 40; at++) send(history, conversation(`other ${at}`));
  const forgotten = send(history, conversation("first"));
  expect(forgotten?.cause).not.toBe("not-cached");
});
