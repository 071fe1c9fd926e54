import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { GenerationEvent } from "../core/events.ts";
import type { Log } from "./log.ts";
import { Mask, MaskedEvents, maskedLog } from "./mask.ts";

const secret = "sk-live-0123456789abcdef";
const mask = new Mask([secret, "http-password-1", "short"]);

function deltas(chunks: readonly string[]): GenerationEvent[] {
  return chunks.map((text) => ({ type: "text-delta", choice: 0, text }));
}

function shown(batches: readonly (readonly GenerationEvent[])[]): string {
  const masked = new MaskedEvents(mask);
  return batches
    .flatMap((batch) => masked.read(batch))
    .map((event) => (event.type === "text-delta" ? event.text : ""))
    .join("");
}

const end: GenerationEvent = { type: "end", end: { kind: "done" } };

/** Text with secrets and with beginnings of secrets, cut anywhere. */
const word = fc.oneof(
  fc.constant(secret),
  fc.nat(secret.length).map((length) => secret.slice(0, length)),
  fc.constant("http-password-1"),
  fc.string(),
);
const cutText = fc
  .tuple(fc.array(word, { maxLength: 6 }), fc.array(fc.nat(200), { maxLength: 30 }))
  .map(([words, cuts]) => {
    const text = words.join("");
    const at = [0, ...cuts.filter((cut) => cut < text.length).sort((a, b) => a - b), text.length];
    return { text, chunks: at.slice(1).map((cut, i) => text.slice(at[i], cut)) };
  });

test("for every text in every cut, no secret gets out, and at most five characters of its beginning", () => {
  fc.assert(
    fc.property(cutText, ({ text, chunks }) => {
      const out = shown([...chunks.map((chunk) => deltas([chunk])), [end]]);
      const beginnings = [secret, "http-password-1"].map((one) => one.slice(0, 5).replace(/./g, "(?:$&"));
      const begun = beginnings.map((one) => one + ")?".repeat(5)).join("|");
      // A beginning before a secret may have been text or leaked; both sides lose all of them.
      const normal = (masked: string): string => masked.replace(new RegExp(`(?:${begun})*\\[key\\]`, "g"), "[key]");
      expect(normal(out)).toBe(normal(mask.text(text)));
      expect(out).not.toContain(secret);
      expect(out).not.toContain(secret.slice(6));
    }),
    { numRuns: 2000 },
  );
});

test("text without a secret passes unchanged and without delay", () => {
  fc.assert(
    fc.property(fc.array(fc.string()), (texts) => {
      const masked = new MaskedEvents(mask);
      for (const event of deltas(texts)) expect(masked.read([event])[0]).toBe(event);
    }),
  );
});

test("texts of choices and calls are apart, and a held beginning comes out before what follows it", () => {
  const masked = new MaskedEvents(mask);
  const half = secret.slice(0, 10);
  expect(masked.read([{ type: "text-delta", choice: 0, text: `a ${half}` }])).toMatchObject([{ text: "a " }]);
  const other = { type: "tool-call-delta", choice: 1, index: 0, arguments: secret.slice(10) } as const;
  expect(masked.read([other])).toEqual([other]);
  const finish = { type: "finish", choice: 0, reason: "stop" } as const;
  expect(masked.read([finish])).toEqual([{ type: "text-delta", choice: 0, text: half }, finish]);
});

test("all members of events and log lines are masked; short words are not secrets", () => {
  const error = new Error(`bad key ${secret}`);
  expect(mask.value({ a: [{ b: `x ${secret}` }], error, c: "short" })).toMatchObject({
    a: [{ b: "x [key]" }],
    c: "short",
  });
  expect(String(mask.value({ error }).error)).not.toContain(secret);
  const plain = { a: [1, "b"] };
  expect(mask.value(plain)).toBe(plain);
});

test("200,000 choices of one event each are masked in linear time", () => {
  // For each event, the open texts of all choices were looked through: 50,000 choices held the gateway for minutes. No test had more
  // than a few choices.
  const masked = new MaskedEvents(mask);
  const half = secret.slice(0, 10);
  const count = 200_000;
  for (let choice = 0; choice < count; choice++) masked.read([{ type: "text-delta", choice, text: half }]);
  expect(masked.read([end])).toHaveLength(count + 1);
});

function recording(level?: string): { log: Log; lines: unknown[] } {
  const lines: unknown[] = [];
  const write = (fields: object, message: string): void => void lines.push([fields, message]);
  const isLevelEnabled = level === undefined ? {} : { isLevelEnabled: (asked: string) => asked === level };
  return { log: { debug: write, info: write, warn: write, error: write, ...isLevelEnabled }, lines };
}

test("no line shows a secret", () => {
  const { log, lines } = recording();
  maskedLog(log, () => new Mask(["secret-0123"])).info({ at: { name: "a secret-0123", n: 1 } }, "it is secret-0123");
  expect(lines).toEqual([[{ at: { name: "a [key]", n: 1 } }, "it is [key]"]]);
});

test("a line that is not written is not looked through", () => {
  const { log, lines } = recording("warn");
  const masked = maskedLog(log, () => {
    throw new Error("asked for the mask");
  });
  masked.info({}, "finished");
  expect(lines).toEqual([]);
  expect(() => masked.warn({}, "slow")).toThrow("asked for the mask");
  // The masked log did not say which levels are written: models never reported what their slots do, even with --log-level debug.
  expect(masked.isLevelEnabled?.("warn")).toBe(true);
  expect(masked.isLevelEnabled?.("debug")).toBe(false);
});
