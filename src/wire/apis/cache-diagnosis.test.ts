import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runSync } from "../core/steps.ts";
import type { Message } from "../core/message.ts";
import {
  cacheMissReasons,
  compareFingerprints,
  compareWith,
  fingerprint,
  storedFingerprint,
} from "./cache-diagnosis.ts";
import type { ComparedRequest, Fingerprint, StoredFingerprint } from "./cache-diagnosis.ts";

const text = fc.string({ maxLength: 30, unit: "grapheme" });
const content = fc.oneof(text, fc.array(fc.record({ type: fc.constant("text" as const), text }), { maxLength: 3 }));
const call = fc.record({ type: fc.constant("tool-call" as const), id: text, name: text, arguments: fc.json() });
const message: fc.Arbitrary<Message> = fc.oneof(
  fc.record({ role: fc.constant("user" as const), content }),
  fc.record({ role: fc.constant("assistant" as const), content: fc.oneof(text, fc.array(call, { maxLength: 2 })) }),
  fc.record({ role: fc.constant("tool" as const), content, toolCallId: text, isError: fc.boolean() }),
);
const messages = fc.array(message, { minLength: 1, maxLength: 12 });
const settings = fc.record(
  {
    model: text,
    tier: fc.constantFrom("flex", "priority"),
    cacheKey: text,
    format: fc.jsonValue(),
    effort: fc.constantFrom("low", "high"),
    verbosity: fc.constantFrom("low", "high"),
    others: fc.jsonValue(),
  },
  { requiredKeys: ["model"] },
);
const request = fc.record({
  settings,
  tools: fc.option(fc.array(fc.record({ name: text, schema: fc.jsonValue() }), { minLength: 1 }), { nil: undefined }),
  system: fc.array(fc.record({ role: fc.constant("system" as const), content }), { maxLength: 1 }),
  messages,
});
type Drawn = typeof request extends fc.Arbitrary<infer Value> ? Value : never;

function compared({ settings, tools, system, messages }: Drawn): ComparedRequest {
  return { settings, tools, prompt: { kind: "chat", messages: [...system, ...messages], template: {} } };
}

// Messages are other objects in each request, except for those of a remembered history.
const read = (drawn: Drawn): Fingerprint => runSync(fingerprint(compared(structuredClone(drawn))));
/** As it comes back from a store. */
const stored = (drawn: Drawn): StoredFingerprint =>
  JSON.parse(JSON.stringify(storedFingerprint(read(drawn)))) as StoredFingerprint;

function tokensOf(drawn: Drawn): number {
  const { tools, system, messages } = stored(drawn);
  return [tools, system, ...messages].reduce((sum, [, tokens]) => sum + tokens, 0);
}

type Wire = keyof typeof cacheMissReasons;
const wires = Object.keys(cacheMissReasons) as Wire[];

function verdict(wire: Wire, earlier: Drawn, later: Drawn): string | null {
  const found = compareFingerprints<string>(stored(earlier), read(later), cacheMissReasons[wire]);
  return typeof found === "object" ? (found?.reason ?? null) : found;
}

describe.each(wires)("the comparison of requests, %s", (wire) => {
  test("a conversation that only grows never diverges, nor does its beginning", () => {
    fc.assert(
      fc.property(request, fc.array(message, { maxLength: 5 }), text, (earlier, more, last) => {
        const later = { ...earlier, messages: [...earlier.messages, ...more] };
        expect(verdict(wire, earlier, later)).toBeNull();
        expect(verdict(wire, later, earlier)).toBeNull();
        // A client appends a part to its last message.
        const end = earlier.messages.at(-1);
        if (end?.role !== "user") return;
        const parts = typeof end.content === "string" ? [{ type: "text" as const, text: end.content }] : end.content;
        const longer = { ...end, content: [...parts, { type: "text" as const, text: last }] };
        expect(verdict(wire, earlier, { ...earlier, messages: [...earlier.messages.slice(0, -1), longer] })).toBeNull();
      }),
    );
  });

  test("each change has its reason, and only the first one is reported", () => {
    const parts = cacheMissReasons[wire].filter(([part]) => part !== "compaction");
    fc.assert(
      fc.property(request, fc.nat(), fc.nat(), message, (earlier, first, index, other) => {
        const later = { ...earlier, messages: [...earlier.messages, other] };
        const changed = parts[first % parts.length];
        if (!changed) return;
        const at = index % earlier.messages.length;
        // Everything that is compared later changes, too.
        for (const [part] of parts.slice(parts.indexOf(changed))) {
          if (part === "messages") {
            // The name differs, too: a part that follows an empty last message is no change.
            const content = `${JSON.stringify(later.messages[at])}!`;
            later.messages = later.messages.with(at, { role: "user", name: "changed", content });
          } else if (part === "system")
            later.system = [{ role: "system", content: `${JSON.stringify(later.system)}!` }];
          else if (part === "tools") later.tools = [...(later.tools ?? []), { name: "x", schema: null }];
          else later.settings = Object.assign({}, later.settings, { [part]: `${JSON.stringify(later.settings)}!` });
        }
        expect(verdict(wire, earlier, later)).toBe(changed[1]);
      }),
    );
  });
});

const user = (content: string): Message => ({ role: "user", content });
const plain: Drawn = {
  settings: { model: "m" },
  tools: undefined,
  system: [],
  messages: [user("a".repeat(400)), user("b".repeat(400)), user("c".repeat(400))],
};

describe("the tokens of a divergence", () => {
  const missed = (earlier: Drawn, later: Drawn) =>
    compareFingerprints(stored(earlier), read(later), cacheMissReasons.messages);

  test("are those of the earlier prompt that follow it", () => {
    const whole = tokensOf(plain);
    expect(whole).toBeGreaterThan(300);
    const second = { ...plain, messages: plain.messages.with(1, user("B")) };
    expect(missed(plain, second)).toEqual({
      reason: "messages_changed",
      reusableTokens: whole,
      missedTokens: Math.round((whole * 2) / 3),
    });
    expect(missed(plain, { ...plain, settings: { model: "other" } })).toMatchObject({ missedTokens: whole });
    const withTools = { ...plain, tools: [{ name: "t".repeat(400), schema: null }] };
    expect(missed(withTools, { ...withTools, system: [{ role: "system", content: "x" }] })).toMatchObject({
      reason: "system_changed",
      missedTokens: whole,
    });
    expect(missed(withTools, plain)).toMatchObject({ reason: "tools_changed", missedTokens: tokensOf(withTools) });
  });

  test("are scaled by the tokens that an engine has counted", async () => {
    const later = { ...plain, settings: { model: "other" } };
    const comparison = compareWith(Promise.resolve(stored(plain)), read(later), cacheMissReasons.messages);
    expect(comparison(10)).toBe("pending");
    await Promise.resolve().then(() => {});
    expect(comparison(2 * tokensOf(later))).toMatchObject({ missedTokens: 2 * tokensOf(plain) });
    expect(comparison(0)).toMatchObject({ missedTokens: tokensOf(plain) });
  });
});

test("long conversations are stored in groups: they take little space, and a divergence is found in its group", () => {
  const long = (count: number): Drawn => ({
    ...plain,
    messages: Array.from({ length: count }, (_, at) => user(`${at}`)),
  });
  const earlier = long(5000);
  expect(JSON.stringify(stored(earlier)).length).toBeLessThan(1200);
  expect(verdict("messages", earlier, long(5001))).toBeNull();
  expect(verdict("messages", earlier, { ...earlier, messages: earlier.messages.with(4000, user("x")) })).toBe(
    "messages_changed",
  );
  expect(verdict("messages", earlier, { ...earlier, messages: earlier.messages.with(4999, user("x")) })).toBe(
    "messages_changed",
  );
  // It ends within a group, whose digest says nothing about a part of it.
  expect(verdict("messages", earlier, long(4000))).toBe("unavailable");
});

test("a fingerprint contains no text of the request", () => {
  const secret: Drawn = {
    settings: { model: "secret", cacheKey: "secret", format: { name: "secret" } },
    tools: [{ name: "secret", schema: "secret" }],
    system: [{ role: "system", content: "secret" }],
    messages: [user("secret")],
  };
  expect(JSON.stringify(stored(secret))).not.toContain("secret");
});

test("a compaction is the reason only where the input diverges", () => {
  const withCompaction: Drawn["settings"] & { compaction: unknown } = {
    model: "m",
    compaction: [{ type: "compaction" }],
  };
  const compacted = { ...plain, settings: withCompaction };
  expect(verdict("responses", plain, compacted)).toBeNull();
  expect(verdict("responses", plain, { ...compacted, messages: [user("summary")] })).toBe("context_compacted");
  expect(verdict("responses", compacted, { ...compacted, messages: [user("other")] })).toBe("input_changed");
});

test("ids that no prompt contains, and the form of a text, make no difference", () => {
  const earlier: Drawn = {
    ...plain,
    messages: [
      user("Hi"),
      { role: "assistant", content: [{ type: "reasoning", text: "Hm", id: "rs_1" }] },
      { role: "tool", toolCallId: "call_1", content: "1", path: "input[2]" },
      user("Go on"),
    ],
  };
  const later: Drawn = {
    ...plain,
    messages: [
      { role: "user", content: [{ type: "text", text: "Hi" }] },
      { role: "assistant", content: [{ type: "reasoning", text: "Hm", id: "rs_2" }] },
      { role: "tool", toolCallId: "call_2", content: "1" },
      user("Go on"),
    ],
  };
  expect(verdict("messages", earlier, later)).toBeNull();
});

test("an answer that the request has begun is not part of the prompt", () => {
  const prompt = (messages: Message[], continueFinalMessage: boolean): ComparedRequest => ({
    settings: {},
    tools: undefined,
    prompt: { kind: "chat", messages, template: continueFinalMessage ? { continueFinalMessage } : {} },
  });
  const earlier = runSync(fingerprint(prompt([user("Hi"), { role: "assistant", content: "He" }], true)));
  const later = runSync(fingerprint(prompt([user("Hi"), { role: "assistant", content: "Hello" }, user("!")], false)));
  expect(compareFingerprints(storedFingerprint(earlier), later, cacheMissReasons.messages)).toBeNull();
});

test("what a store cannot give is no reason to fail", async () => {
  const of = async (earlier: Promise<StoredFingerprint | undefined>) => {
    const comparison = compareWith(earlier, read(plain), cacheMissReasons.messages);
    await earlier.catch(() => {});
    await Promise.resolve();
    await Promise.resolve();
    return comparison(undefined);
  };
  expect(await of(Promise.resolve(undefined))).toBe("not-found");
  expect(await of(Promise.reject(new Error("Redis is away")))).toBe("unavailable");
  expect(await of(Promise.resolve({} as StoredFingerprint))).toBe("unavailable");
});
