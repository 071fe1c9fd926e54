import * as fc from "fast-check";
import { expect, test } from "vitest";
import { readBase64Json } from "./base64-json.ts";
import { BodyCounter } from "./body-counter.ts";

const sealed = (text: string): string => Buffer.from(text).toString("base64");
const read = (text: string): unknown => readBase64Json(text, new BodyCounter());

test("a value is read back, however long and however it was broken into lines", () => {
  const lengths = fc.oneof(
    fc.nat(20),
    fc.integer({ min: 49_100, max: 49_200 }),
    fc.integer({ min: 98_250, max: 98_350 }),
  );
  fc.assert(
    fc.property(lengths, fc.integer({ min: 1, max: 80 }), (length, line) => {
      const value = { text: "ü".repeat(length) };
      const text = sealed(JSON.stringify(value));
      expect(read(text)).toEqual(value);
      expect(read(text.replaceAll(new RegExp(`.{1,${line}}`, "g"), "$&\r\n"))).toEqual(value);
    }),
    { numRuns: 50 },
  );
});

test.each(["", "?", "e30", "e30=", "e30==", "AAAA", `${"A".repeat(70_000)}=A`])(
  "%.20j is read as atob has it",
  (text) => {
    const expected = ((): unknown => {
      try {
        return JSON.parse(atob(text)) as unknown;
      } catch {
        return undefined;
      }
    })();
    expect(read(text)).toEqual(expected);
  },
);

// 15 MB of a seal were decoded and counted before they were refused: 90 ms in one piece.
test("what holds too much is refused before all of it is decoded", () => {
  let counted = 0;
  class Watched extends BodyCounter {
    override add(bytes: Uint8Array): void {
      counted += bytes.length;
      super.add(bytes);
    }
  }
  const text = sealed(`[${"[],".repeat(2_000_000)}[]]`);
  expect(() => readBase64Json(text, new Watched())).toThrow("more than 100000 objects and lists");
  expect(counted).toBeLessThan(1_000_000);
});
