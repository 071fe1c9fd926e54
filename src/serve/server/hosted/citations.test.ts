import fc from "fast-check";
import { expect, test } from "vitest";
import { CitationFinder } from "./citations.ts";

const result = { url: "https://a.example/page", title: "A page", text: "What it says." };

function finder(): CitationFinder {
  const citations = new CitationFinder();
  citations.add([result]);
  return citations;
}

test("a Markdown link with the address of a result is a citation of the whole link", () => {
  const text = "So [it is](https://a.example/page).";
  const [citation] = finder().read(text);
  expect(citation).toEqual({ url: result.url, title: "A page", start: 3, end: 34, citedText: "What it says." });
  expect(text.slice(citation?.start, citation?.end)).toBe("[it is](https://a.example/page)");
});

test("an address alone is a citation, without the full stop after it, and at the end of the text", () => {
  const citations = finder();
  expect(citations.read("See https://a.example/page. And")).toMatchObject([{ start: 4, end: 26 }]);
  expect(citations.read(" https://a.example/page")).toEqual([]);
  expect(citations.endPart()).toMatchObject([{ start: 32, end: 54 }]);
});

test("other addresses are no citations", () => {
  expect(finder().read("https://b.example/page (https://a.example/page2) ")).toEqual([]);
  expect(new CitationFinder().read("https://a.example/page ")).toEqual([]);
});

test("for any division of a text the citations are the same", () => {
  const pieces = fc.array(
    fc.constantFrom(
      "[x](https://a.example/page)",
      "https://a.example/page",
      "http",
      " ",
      "(",
      "é[",
      "\u{1F600}",
      "://",
    ),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(pieces, fc.array(fc.nat(40)), (parts, cuts) => {
      const text = parts.join("");
      const whole = finder();
      const divided = finder();
      const expected = [...whole.read(text), ...whole.endPart()];
      const at = [...new Set([0, ...cuts.map((cut) => Math.min(cut, text.length)), text.length])].sort((a, b) => a - b);
      const found = at.slice(1).flatMap((end, index) => divided.read(text.slice(at[index], end)));
      // A character outside of the BMP is cut by no source.
      fc.pre(at.every((cut) => !/[\uDC00-\uDFFF]/.test(text.charAt(cut))));
      expect([...found, ...divided.endPart()]).toEqual(expected);
    }),
  );
});
