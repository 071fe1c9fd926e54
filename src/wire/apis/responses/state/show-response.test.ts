import fc from "fast-check";
import { expect, test } from "vitest";
import { eventsAfter } from "./show-response.ts";

test("every event above the number, and the end mark, wherever the chunks are cut", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.string({ maxLength: 5 }), { minLength: 1, maxLength: 4 }), { maxLength: 6 }),
      fc.integer({ min: -1, max: 25 }),
      fc.boolean(),
      async (groups, after, hasMark) => {
        let number = 0;
        const grouped = groups.map((texts) =>
          texts.map((delta) => {
            const data = JSON.stringify({ type: "x", delta, sequence_number: number++ });
            return `event: x\ndata: ${data}\n\n`;
          }),
        );
        const mark = "data: [DONE]\n\n";
        if (hasMark) grouped.push([mark]);
        const all = grouped.flat();
        const read: string[] = [];
        for await (const chunk of eventsAfter(
          grouped.map((events) => events.join("")),
          after,
        ))
          read.push(chunk);
        expect(read.join("")).toBe(all.filter((event, at) => at > after || event === mark).join(""));
      },
    ),
  );
});
