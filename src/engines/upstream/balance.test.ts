import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Message } from "../../wire/core/message.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { conversationKey } from "../../wire/core/conversation-key.ts";
import { type LoadedUrl, urlOfConversation } from "./balance.ts";

const user = (content: string): Message => ({ role: "user", content });
const system = (content: string): Message => ({ role: "system", content });

function request(messages: readonly Message[], more: Partial<GenerationRequest> = {}): GenerationRequest {
  return {
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
}

const idle = (count: number): LoadedUrl[] =>
  Array.from({ length: count }, (_, at) => ({ url: `http://gpu-${at + 1}:8000/v1`, outstanding: 0 }));
const keys = Array.from({ length: 2000 }, (_, at) => conversationKey(request([user(`Question ${at}`)])));

describe("the key of a conversation", () => {
  const text = fc.string({ maxLength: 40 });
  const message: fc.Arbitrary<Message> = fc.record({ role: fc.constantFrom("user", "assistant"), content: text });

  test("stays the same while the conversation grows", () => {
    fc.assert(
      fc.property(fc.array(text.map(system), { maxLength: 2 }), message, fc.array(message), (start, first, more) => {
        const key = conversationKey(request([...start, first]));
        expect(conversationKey(request([...start, first, ...more]))).toBe(key);
      }),
    );
  });

  test("depends on the owner, the model, the system prompt and the first message", () => {
    const requests = [
      request([system("s"), user("u")]),
      request([system("s"), user("v")]),
      request([system("t"), user("u")]),
      request([user("s"), user("u")]),
      request([system("s"), user("u")], { owner: "ann" }),
      request([system("s"), user("u")], { model: "n" }),
    ];
    expect(new Set(requests.map(conversationKey)).size).toBe(requests.length);
  });

  test("ignores what changes at the end of a long system prompt", () => {
    const rules = "Read a file before you edit it. ".repeat(40);
    const on = (day: string): string => conversationKey(request([system(`${rules}Today is ${day}.`), user("Hi")]));
    expect(on("Monday")).toBe(on("Tuesday"));
  });

  test("is that of the same text, in parts or not, with an image or without text", () => {
    const parts = (content: Message["content"]): string =>
      conversationKey(request([{ role: "user", content } as Message]));
    expect(parts([{ type: "text", text: "Hi" }])).toBe(parts("Hi"));
    const image = (data: string): string =>
      parts([{ type: "image", url: `data:image/png;base64,${data}` } as never, { type: "text", text: "What is it?" }]);
    expect(image("AAAA")).not.toBe(image("BBBB"));
    expect(image("A".repeat(1_000_000))).toBe(image("A".repeat(2_000_000)));
  });

  test("of a text is its beginning", () => {
    const long = "It was a dark and stormy night. ".repeat(64);
    const text = (prompt: string): string =>
      conversationKey(request([], { prompt: { kind: "text", prompts: [prompt] } }));
    expect(text(long)).toBe(text(`${long} The rain fell.`));
    expect(text("a")).not.toBe(text("b"));
  });
});

describe("the URL of a conversation", () => {
  test("is each URL for about as many conversations", () => {
    const counts = new Map<string, number>();
    for (const key of keys) {
      const { url } = urlOfConversation(idle(4), key);
      counts.set(url, (counts.get(url) ?? 0) + 1);
    }
    expect(counts.size).toBe(4);
    for (const count of counts.values()) expect(Math.abs(count - 500)).toBeLessThan(100);
  });

  test("does not depend on the order of the URLs, and stays when another URL leaves or comes", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 8 }), fc.nat(), fc.string(), (count, gone, key) => {
        const urls = idle(count);
        const { url } = urlOfConversation(urls, key);
        expect(urlOfConversation(urls.toReversed(), key).url).toBe(url);
        const fewer = urls.filter((_, at) => at !== gone % count);
        const moved = urlOfConversation(fewer, key).url;
        if (fewer.some((other) => other.url === url)) expect(moved).toBe(url);
        expect(urlOfConversation(urls, key).url).toBe(url);
      }),
    );
  });

  test("has at most 1.25 times the average to do, or four requests", () => {
    const load = fc.array(fc.nat({ max: 30 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(load, fc.string(), (loads, key) => {
        const urls = loads.map((outstanding, at) => ({ url: `http://gpu-${at}`, outstanding }));
        const total = loads.reduce((sum, count) => sum + count, 0) + 1;
        const chosen = urlOfConversation(urls, key);
        expect(chosen.outstanding + 1).toBeLessThanOrEqual(Math.max(4, Math.ceil((1.25 * total) / loads.length)));
      }),
    );
  });

  test("is the same second choice for every request while the first one is busy", () => {
    for (const key of keys.slice(0, 50)) {
      const first = urlOfConversation(idle(4), key).url;
      const busy = idle(4).map((target) => (target.url === first ? { ...target, outstanding: 9 } : target));
      const second = urlOfConversation(busy, key).url;
      expect(second).not.toBe(first);
      expect(second).toBe(
        urlOfConversation(
          idle(4).filter(({ url }) => url !== first),
          key,
        ).url,
      );
    }
  });
});
