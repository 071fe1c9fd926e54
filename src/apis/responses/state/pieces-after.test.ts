import fc from "fast-check";
import { expect, test } from "vitest";
import { piecesAfter } from "./pieces-after.ts";

test("every event above the number, and the mark of the end, wherever the pieces are cut", async () => {
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
        const told: string[] = [];
        for await (const piece of piecesAfter(each(grouped.map((events) => events.join(""))), after)) told.push(piece);
        expect(told.join("")).toBe(all.filter((event, at) => at > after || event === mark).join(""));
      },
    ),
  );
});

async function* each(pieces: readonly string[]): AsyncGenerator<string> {
  yield* pieces;
}
