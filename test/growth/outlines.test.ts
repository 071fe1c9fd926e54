import { expect, test } from "vitest";
import { brokenPrefix, likenessTo } from "../../src/wire/core/compare-outlines.ts";
import type { Message } from "../../src/wire/core/message.ts";
import { outlinePrompt } from "../../src/wire/core/prompt-outline.ts";
import type { PromptOutline } from "../../src/wire/core/prompt-outline.ts";
import { runSync } from "../../src/wire/core/steps.ts";
import { growthOf, maxGrowth } from "../support/growth.ts";

const user = (content: string): Message => ({ role: "user", content });
const outlineOf = (messages: readonly Message[]): PromptOutline => runSync(outlinePrompt({ messages }));

/** Conversations of clients, of `n` messages or of a text that grows with `n`. */
const shapes: Readonly<Record<string, (n: number) => Message[]>> = {
  "messages that say the same": (n) => Array.from({ length: n }, () => user("Go on.")),
  "messages that say something else": (n) => Array.from({ length: n }, (_, at) => user(`Message ${at}`)),
  "one message of many parts": (n) => [
    { role: "user", content: Array.from({ length: n }, (_, at) => ({ type: "text", text: `Part ${at}` })) },
  ],
  "a system prompt of numbers": (n) => [{ role: "system", content: "2026-11-22 12:00, ".repeat(n) }, user("Hi")],
  "a system prompt of one word": (n) => [{ role: "system", content: "a1-".repeat(8 * n) }, user("Hi")],
  "a system prompt of points": (n) => [{ role: "system", content: ".".repeat(16 * n) }, user("Hi")],
};

test.each(Object.entries(shapes))("an outline, and its comparison, take time linear in the prompt: %s", (_, shape) => {
  expect(growthOf((n) => () => outlineOf(shape(n)))).toBeLessThan(maxGrowth);
  const growth = growthOf((n) => {
    const known = outlineOf([user("Hello."), ...shape(n)]);
    const asked = outlineOf([...shape(n), user("Why?")]);
    return () => [likenessTo(asked)(known), brokenPrefix(known, asked)];
  });
  expect(growth).toBeLessThan(maxGrowth);
});
