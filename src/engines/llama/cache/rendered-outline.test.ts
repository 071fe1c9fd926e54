import fc from "fast-check";
import { expect, test, vi } from "vitest";
import type { Message } from "../../../wire/core/message.ts";
import { outlineRendered } from "./rendered-outline.ts";

const turn = fc.record({
  role: fc.constantFrom("user" as const, "assistant" as const),
  content: fc.string({ unit: "grapheme", minLength: 1, maxLength: 300 }).filter((text) => text.trim() !== ""),
});

test("each message begins where the one before ends, in bytes, wherever the template puts its marks", () => {
  fc.assert(
    fc.property(fc.array(turn, { minLength: 1, maxLength: 8 }), fc.string({ minLength: 1 }), (messages, mark) => {
      const opening = `${mark}>`;
      const rendered = messages.map(({ content }) => `${mark}${content.trim()}`).join("") + opening;
      const outline = outlineRendered({ messages, tools: [], options: {}, rendered, opening });
      expect(outline?.bytes).toBe(Buffer.byteLength(rendered));
      expect(outline?.openingBytes).toBe(Buffer.byteLength(opening));
      let end = 0;
      for (const [at, start] of (outline?.starts ?? []).entries()) {
        // A text that stands in a mark is found too early, never too late.
        expect(start).toBeLessThanOrEqual(end);
        end += Buffer.byteLength(`${mark}${messages[at]?.content.trim()}`);
      }
    }),
  );
});

test("messages that the prompt does not show cost no more than others", () => {
  const messages = Array.from({ length: 5000 }, (_, at): Message => ({ role: "user", content: `Hidden ${at}` }));
  const rendered = "x".repeat(2 ** 20);
  const looks = vi.spyOn(String.prototype, "indexOf");
  outlineRendered({ messages, tools: [], options: {}, rendered, opening: "" });
  const { length: count } = looks.mock.calls;
  looks.mockRestore();
  // Each of them would be looked for in the whole megabyte.
  expect(count).toBeGreaterThan(0);
  expect(count).toBeLessThanOrEqual(20);
  expect(outlineRendered({ messages: [...messages, ...messages], tools: [], options: {}, rendered, opening: "" })).toBe(
    undefined,
  );
});

test("the same words as a string and as a block are the same message", () => {
  const outlined = (content: Extract<Message, { role: "user" }>["content"]): string | undefined =>
    outlineRendered({ messages: [{ role: "user", content }], tools: [], options: {}, rendered: "Hi", opening: "" })
      ?.messages[0]?.text;
  expect(outlined("Hi")).toBe(outlined([{ type: "text", text: "Hi" }]));
});
