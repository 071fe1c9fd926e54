import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BlockSplitter } from "./block-splitter.ts";
import type { MarkdownBlock } from "./block-splitter.ts";
import { markdown } from "./parser.ts";

/** All blocks of a text that arrives in these parts, the open one last. */
function blocksOf(...parts: readonly string[]): MarkdownBlock[] {
  const splitter = new BlockSplitter();
  const closed = parts.flatMap((part) => splitter.push(part));
  return splitter.open ? [...closed, splitter.open] : closed;
}

/** As one HTML text, as the library writes it. */
function htmlOf(blocks: readonly MarkdownBlock[]): string {
  const { escapeHtml } = markdown.utils;
  return blocks
    .map((block) => {
      if (block.kind === "markdown") return markdown.render(block.source);
      const name = block.language === "" ? "" : ` class="language-${escapeHtml(block.language)}"`;
      return `<pre><code${name}>${escapeHtml(block.chunks.join(""))}</code></pre>\n`;
    })
    .join("");
}

const lines = [
  "A word, *emphasis* and **more**.",
  "- item",
  "- [x] done",
  "  - nested item",
  "    - deeper",
  "1. first",
  "2. second",
  "7) other",
  "   continued",
  "    indented",
  "> quote",
  "> > deeper quote",
  "> - item in a quote",
  "```",
  "```js",
  "````",
  "~~~",
  "  ```py",
  "   ```",
  "const a = `b`;",
  "| a | b |",
  "|---|:-:|",
  "| 1 | 2 |",
  "# Heading",
  "### *Third*",
  "===",
  "---",
  "***",
  "$$",
  "\\[",
  "x = 1 \\]",
  "\\(a*b*c\\) and $x_1$",
  "[text](https://example.com) ![alt](http://a/b.png)",
  "[1]: https://example.com",
  "<b>bold</b>",
  "\t- tabbed",
  "",
  "",
  "",
  "   ",
] as const;

const text = fc
  .array(fc.tuple(fc.constantFrom(...lines), fc.constantFrom("\n", "\n", "\n", "\r\n", "\n\n")), { maxLength: 30 })
  .map((pairs) => pairs.map((pair) => pair.join("")).join(""));
/** Blocks that are long enough to be cut. */
const longText = fc
  .array(
    fc.tuple(
      fc.oneof(
        { weight: 3, arbitrary: fc.constantFrom(...lines) },
        fc.constantFrom("word ".repeat(300), "x".repeat(7000)),
      ),
      fc.nat(90),
      fc.constantFrom("\n", "\n\n"),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.map(([line, times, end]) => `${line} w${times}${end}`.repeat(1 + times)).join(""));

const cuts = fc.array(fc.nat(1_000_000), { maxLength: 12 });

function divided(text: string, places: readonly number[]): string[] {
  const at = [0, ...places.map((place) => place % (text.length + 1)).toSorted((a, b) => a - b), text.length];
  return at.slice(1).map((end, index) => text.slice(at[index], end));
}

describe("BlockSplitter", () => {
  test("a text has the same blocks, however it is divided", () => {
    fc.assert(
      fc.property(fc.oneof(text, longText), cuts, (text, places) => {
        expect(blocksOf(...divided(text, places))).toEqual(blocksOf(text));
      }),
      { numRuns: 300 },
    );
  });

  test("character by character, too", () => {
    fc.assert(
      fc.property(text, (text) => {
        expect(blocksOf(...text)).toEqual(blocksOf(text));
      }),
      { numRuns: 500 },
    );
  });

  test("the blocks are those of the library, which parses the whole text at once", () => {
    fc.assert(
      fc.property(text, (text) => {
        // Whether an item has paragraphs depends on all items of a list; the page renders both in the same way.
        const normal = (html: string): string =>
          html
            .replace(/<\/?p>/g, "")
            .replace(/\s+/g, " ")
            .replaceAll("> <", "><");
        expect(normal(htmlOf(blocksOf(text)))).toBe(normal(markdown.render(text)));
      }),
      { numRuns: 3000 },
    );
  });
});
