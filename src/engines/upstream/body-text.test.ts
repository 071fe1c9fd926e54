import fc from "fast-check";
import { expect, test } from "vitest";
import { requestBodyText } from "./prepare-attempt.ts";

test("a body is what JSON.stringify makes of it, however long it is", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.jsonValue({ maxDepth: 3 }),
      fc.string({ unit: "binary", maxLength: 20 }),
      fc.constantFrom(1, 100, 50_000),
      async (value, word, times) => {
        const body = { messages: [{ content: word.repeat(times) }], value };
        expect(await requestBodyText(body)).toBe(JSON.stringify(body));
      },
    ),
    { numRuns: 40 },
  );
});

test("others have their turn while a long one is written", async () => {
  // Forwarding 30 MB held the event loop for 76 to 139 ms.
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  const text = await requestBodyText({ content: "word ".repeat(1_000_000) });
  clearInterval(timer);
  expect(text.length).toBeGreaterThan(5_000_000);
  expect(turns).toBeGreaterThan(20);
});
