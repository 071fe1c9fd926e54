import { expect, test } from "vitest";
import { htmlText } from "../../src/engines/upstream/background/page-text.ts";
import { growthOf, maxGrowth } from "../support/growth.ts";

/*
 * The CPU time of reading a page grows linearly with hostile HTML: deep nesting and ends without a beginning, which parsers look for in the
 * list of open elements, and everything that is never closed.
 */
const shapes: Readonly<Record<string, (size: number) => string>> = {
  "open elements": (size) => "<a>".repeat(size),
  "open elements, then ends of another": (size) => "<b>".repeat(size) + "</i>".repeat(size),
  "open elements, then their ends": (size) => "<i>".repeat(size) + "x" + "</i>".repeat(size),
  "open paragraphs in lists": (size) => "<ul><li><p>".repeat(size),
  "ends of paragraphs": (size) => "</p>".repeat(size),
  "hidden in hidden": (size) => "<div hidden>".repeat(size) + "</div>".repeat(size) + "x",
  "open scripts": (size) => "<script>".repeat(size),
  "one open comment": (size) => `<!--${"-".repeat(size * 4)}`,
  "one open tag": (size) => `<p ${"a ".repeat(size)}`,
  "attributes of one tag": (size) => `<p ${Array.from({ length: size }, (_, at) => `a${at}=1`).join(" ")}>x`,
  "one open attribute": (size) => `<p a="${"x".repeat(size * 4)}`,
  "character references": (size) => "&amp;&#65;&lt".repeat(size),
  "unknown references": (size) => "&aaaaaaaaaaaaaaaaa".repeat(size),
  "less-than signs": (size) => "<".repeat(size * 4),
  spaces: (size) => `a${" ".repeat(size * 4)}b`,
  "spaces in a title": (size) => `<title>${" ".repeat(size * 4)}`,
  links: (size) => '<a href="/x">y'.repeat(size),
  "a long link": (size) => `<a href="/${"x/../".repeat(size)}">y</a>`,
  bases: (size) => '<base href="a/">'.repeat(size) + "x",
  cells: (size) => "<td>".repeat(size) + "x",
  doctypes: (size) => "<!doctype html>".repeat(size) + "x",
  "foreign elements": (size) => "<math><mi>".repeat(size) + "x",
  "foreign elements in text": (size) => "<svg><p><title>".repeat(size) + "x",
  "styles that hide": (size) => `<p style="${"display: ".repeat(size)}">x`,
};

test.each(Object.entries(shapes))("%s", (name, shape) => {
  const growth = growthOf((size) => {
    const html = shape(size);
    return () => {
      try {
        return htmlText(html, "https://example.com/");
      } catch (error) {
        // A page may have no text.
        return error;
      }
    };
  });
  if (process.env["TRUEWIRE_GROWTH"] === "1") console.log(`${name}: ${growth.toFixed(1)}`);
  expect(growth).toBeLessThan(maxGrowth);
});
