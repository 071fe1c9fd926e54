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

  // The header of the table is the last line of a paragraph until the line below it arrives.
  test("a long paragraph is not cut before a table whose header may still be its last line", () => {
    for (let length = 2970; length < 3020; length++) {
      const text = `${"x".repeat(length)}\n| a | b |\n|---|---|\n| 1 | 2 |\n`;
      const blocks = blocksOf(...text.split(/(?<=\n)/));
      expect(blocks, String(length)).toEqual(blocksOf(text));
      expect(htmlOf(blocks)).toContain("<th>a</th>");
    }
  });

  test("a long ordered list continues its numbers in the next block", () => {
    const blocks = blocksOf(Array.from({ length: 600 }, () => "1. an item of the list\n").join(""));
    expect(blocks.length).toBeGreaterThan(3);
    const numbers = blocks.map((block) => (block.kind === "markdown" ? [block.start, itemsOf(block.source)] : []));
    let next = 1;
    for (const [start, items] of numbers) {
      expect(start ?? 1).toBe(next);
      next += items ?? 0;
    }
    expect(next).toBe(601);
  });

  test("a long table repeats its header in the next block, which has all rows together", () => {
    const blocks = blocksOf("| a | b |\n|---|---|\n", "| one | two |\n".repeat(1000), "\nafter\n");
    const sources = blocks.map((block) => (block.kind === "markdown" ? block.source : ""));
    const tables = sources.filter((source) => source.startsWith("| a | b |\n|---|---|\n| one"));
    expect(tables.length).toBeGreaterThan(3);
    expect(tables.join("").match(/\| one/g)).toHaveLength(1000);
    expect(sources.at(-1)).toBe("after\n");
  });

  // The library adds 1,400 empty cells to each of these rows.
  test("a wide table with empty rows has no more cells than characters", () => {
    const text = `|${" a |".repeat(200)}\n|${"-|".repeat(200)}\n${"|1|\n".repeat(20_000)}`;
    const cells = blocksOf(text).flatMap((block) =>
      block.kind === "markdown" ? markdown.parse(block.source, {}).filter(({ type }) => type === "td_open") : [],
    );
    expect(cells.length).toBeLessThan(text.length);
  });

  test("code ends at its own fence, and what follows its last line is not code", () => {
    expect(blocksOf("````js\na\n```\nb\n", "````\n# c")).toEqual([
      { kind: "code", language: "js", chunks: ["a\n```\nb\n"], closed: true },
      { kind: "markdown", source: "# c" },
    ]);
    expect(blocksOf("```\na\n```")).toEqual([{ kind: "code", language: "", chunks: ["a\n"], closed: true }]);
    expect(blocksOf("  ~~~ py x\n   a\n b")).toEqual([
      { kind: "code", language: "py", chunks: [" a\nb"], closed: false },
    ]);
  });

  test("a long line is not broken inside a character", () => {
    for (const text of ["```\n", ""].map((start) => `${start}x${"😀".repeat(20_000)}`)) {
      const all = blocksOf(text).flatMap((block) => (block.kind === "code" ? block.chunks : [block.source]));
      expect(all.length).toBeGreaterThan(3);
      expect(all.filter((part) => /^[\udc00-\udfff]|[\ud800-\udbff]$/.test(part.trim()))).toEqual([]);
    }
  });

  test("blocks that are nested too deeply are shown as text, all of them", () => {
    const html = markdown.render(`${"> ".repeat(30)}deep\n\n${"- ".repeat(30)}deeper\n\nafter\n`);
    expect(html.match(/<blockquote>/g)).toHaveLength(24);
    expect(html).toContain("<p>&gt; &gt; &gt; &gt; &gt; &gt; deep</p>");
    expect(html).toContain("- - - - - - - - - - - - - - - - - - deeper");
    expect(html.trimEnd().endsWith("<p>after</p>")).toBe(true);
  });

  test.each([
    ["$a_1 * b * c$", ["math_inline"]],
    ["$5 and $10", ["text"]],
    ["US$5 or A$6", ["text"]],
    ["from $5, or 5$ at most", ["text"]],
    ["US$5 to US$6, or 7$", ["text"]],
    ["$5-$6", ["text"]],
    ["it costs $5 a piece, 4$", ["text"]],
    ["$HOME/$USER and ${HOME}", ["text"]],
    ["between $3 million and 4$ million", ["text"]],
    [
      "the $n$th of $a, b, c$ and $k$-th",
      ["text", "math_inline", "text", "math_inline", "text", "math_inline", "text"],
    ],
    ["$5 x^2$ and $10$", ["math_inline", "text", "math_inline"]],
    ["an open $x + y", ["text"]],
    ["an open $$x + y", ["text"]],
    ["a $$x*y*z$$ b", ["text", "math_inline", "text"]],
    ["\\(a_b*c*\\) and \\[d*e*\\]", ["math_inline", "text", "math_inline"]],
    ["an open \\(a", ["text"]],
    ["*a* \\* $ b", ["em_open", "text", "em_close", "text"]],
  ])("what is a formula, and is not searched for emphasis: %s", (source, types) => {
    const children = markdown.parseInline(source, {})[0]?.children ?? [];
    expect(children.map(({ type }) => type)).toEqual(types);
    expect(children.map(({ content }) => content).join("")).toBe(source.replaceAll("\\*", "*").replace("*a*", "a"));
  });
});

test.each([
  ["$$\nx *a*\n$$", "math_block"],
  ["$$x$$", "math_block"],
  ["\\[\nx\n\\]", "math_block"],
  // While it is written.
  ["$$\nx *a*", "math_text"],
  ["\\[ x", "math_text"],
  ["$$\nx\n\nAfter $$", "math_text"],
  ["$$\nx\n$$ and more", "paragraph_open"],
  ["$$x$$ and more", "paragraph_open"],
])("a formula of several lines is one when it is closed: %j", (source, type) => {
  expect(markdown.parse(source, {})[0]?.type).toBe(type);
});

/** How many items the list at the beginning of a text has. */
function itemsOf(source: string): number {
  return markdown.parse(source, {}).filter(({ type }) => type === "list_item_open").length;
}
