import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { ModelRequest } from "../protocol.ts";
import { BoundedCache, Preparer } from "./preparer.ts";
import type { ThreadRegistration, ThreadSetup } from "./thread-messages.ts";

const template =
  "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

const setup: ThreadSetup = {
  facts: {
    path: "model.gguf",
    architecture: "llama",
    contextSize: 4096,
    chatTemplate: template,
    bosToken: null,
    eosToken: "<|im_end|>",
    specialTokens: ["<|im_start|>", "<|im_end|>"],
    markupTokens: [],
    vocabularySize: 300,
    maxTokenLength: 16,
    takes: {},
    fillsInMiddle: false,
  },
};

function opened(): {
  prepare: (asked: Partial<ModelRequest>) => ReturnType<Preparer["prepare"]>;
  news: ThreadRegistration[];
} {
  const news: ThreadRegistration[] = [];
  const preparer = new Preparer(setup, (each) => news.push(each));
  const chat: ModelRequest = {
    prompt: { kind: "chat", messages: [{ role: "user", content: "Hi" }], template: {} },
    sampling: {},
    limits: {},
  };
  return { news, prepare: (asked) => preparer.prepare({ ...chat, ...asked }, new Date(0)) };
}

function schemaOf(name: string): Partial<ModelRequest> {
  const schema = { type: "object", properties: { [name]: { type: "string" } }, required: [name] };
  return { output: { type: "json-schema", name: "answer", schema, strict: false, path: "response_format" } };
}

test("equal constraints are made and registered once, and referred to by number", () => {
  const { prepare, news } = opened();
  const [first, second, other] = [prepare(schemaOf("city")), prepare(schemaOf("city")), prepare(schemaOf("town"))];
  expect(second.request.constraint).toBe(first.request.constraint);
  expect(other.request.constraint).not.toBe(first.request.constraint);
  expect(news.map(({ type }) => type)).toEqual(["format", "constraint", "constraint"]);
  expect(other.request.reading.format).toBe(first.request.reading.format);
});

test("requests with different inputs of a grammar have different grammars", () => {
  const { prepare } = opened();
  const tool = { name: "look", parameters: { type: "object" }, strict: true };
  const variants: Partial<ModelRequest>[] = [
    { tools: [tool] },
    { tools: [tool], toolChoice: { type: "required" } },
    { tools: [tool], parallelToolCalls: false },
    { tools: [tool], ...schemaOf("city") },
    { tools: [tool, { ...tool, name: "listen" }] },
    { output: { type: "json-object" } },
    { output: { type: "regex", pattern: "a+", path: "guided_regex" } },
    { output: { type: "regex", pattern: "a+", path: "regex" } },
  ];
  const numbers = variants.map((asked) => prepare(asked).request.constraint);
  expect(numbers).not.toContain(undefined);
  expect(new Set(numbers).size).toBe(variants.length);
});

test("unused constraints are dropped in both threads", () => {
  const { prepare, news } = opened();
  const first = prepare(schemaOf("first")).request.constraint;
  for (let i = 0; i < 128; i++) prepare(schemaOf(`next_${i}`));
  expect(news.filter(({ type }) => type === "forget")).toEqual([{ type: "forget", number: first }]);
  const again = prepare(schemaOf("first")).request.constraint;
  expect(again).not.toBe(first);
});

test("BoundedCache drops the value that was used longest ago", () => {
  const dropped: string[] = [];
  const cache = new BoundedCache<string>({ values: 2, weight: 100 }, (value) => dropped.push(value));
  cache.add("a", "A", 1);
  cache.add("b", "B", 1);
  expect(cache.get("a")).toBe("A");
  cache.add("c", "C", 1);
  expect(dropped).toEqual(["B"]);
  expect([cache.get("a"), cache.get("b"), cache.get("c")]).toEqual(["A", undefined, "C"]);
});

test("BoundedCache never exceeds its limits, except for a single value that is too heavy", () => {
  const action = fc.record({ key: fc.integer({ min: 0, max: 9 }), weight: fc.integer({ min: 0, max: 60 }) });
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
      const kept = new Map<string, number>();
      const cache = new BoundedCache<string>({ values: 4, weight: 50 }, (key) => kept.delete(key));
      for (const { key: number, weight } of actions) {
        const key = String(number);
        expect(cache.get(key)).toBe(kept.has(key) ? key : undefined);
        if (kept.has(key)) continue;
        kept.set(key, weight);
        cache.add(key, key, weight);
        expect(kept.has(key)).toBe(true);
        const sum = [...kept.values()].reduce((total, each) => total + each, 0);
        expect(kept.size).toBeLessThanOrEqual(4);
        if (kept.size > 1) expect(sum).toBeLessThanOrEqual(50);
      }
    }),
  );
});
