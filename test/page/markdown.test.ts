import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { describePage, looksOf } from "../support/describe-page.ts";
import type { PageUnderTest } from "../support/describe-page.ts";
import { answered, ask, expectAccessible, expectFits, lastAnswer } from "../support/open-page.ts";

const rendered = ".answer:last-of-type .markdown.said";

/** What is used of an element in the browser, whose types are not those of Node. */
interface Drawn {
  readonly namespaceURI: string;
  getBoundingClientRect(): { readonly height: number };
}

interface Styles {
  getComputedStyle(element: unknown): { readonly direction: string };
}

/** The rendered elements with these names, as their texts. */
function texts(page: Page, selector: string): Promise<string[]> {
  return page.locator(`${rendered} ${selector}`).allTextContents();
}

/** Asks by name for a text of author.js, in chunks of this many characters. */
async function show(page: Page, name: string, size = 7): Promise<void> {
  await ask(page, `${name} ${size}`);
  await page.locator(rendered).waitFor();
}

describePage("answers as Markdown", ["test/page/author.js"], (at) => {
  describe("of every kind", () => ordinary(at));
  describe("that are hostile", () => hostile(at));
});

function ordinary(at: PageUnderTest): void {
  test("each kind of block and its contents", async () => {
    const { page, wrong, close } = await at.open();
    await show(page, "sample", 3);
    await expect.poll(() => texts(page, "h3.level-1")).toEqual(["Sorting"]);
    await expect.poll(() => texts(page, ":is(em, strong, s)")).toEqual(["short", "bold", "old", "36"]);
    await expect.poll(() => texts(page, "p > code")).toEqual(["sorted()"]);
    await expect.poll(() => texts(page, "ol > li")).toHaveLength(2);
    await expect
      .poll(() => texts(page, "ol > li:first-child > ul > li.task"))
      .toEqual(["☑from a file", "☐from standard input"]);
    await expect.poll(() => page.getByRole("img", { name: "Done", exact: true }).count()).toBe(1);
    await expect.poll(() => texts(page, "th")).toEqual(["Name", "Age"]);
    await expect.poll(() => page.locator(`${rendered} td.right strong`).count()).toBe(1);
    await expect.poll(() => texts(page, "blockquote > blockquote p")).toEqual(["twice"]);
    await expect.poll(() => texts(page, "span.formula")).toEqual(["x1∗y∗z2", "ab∗c∗d"]);
    await expect.poll(() => texts(page, "div.formula mfrac")).toEqual(["ab"]);
    await expect.poll(() => texts(page, ".language")).toEqual(["py", "brainfuck"]);
    const links = await page.locator(`${rendered} a`).evaluateAll((all) =>
      all.map((link) => {
        const { href, target, rel, dataset } = link as unknown as Record<string, string> & { dataset: object };
        return { href, target, rel, ...dataset };
      }),
    );
    const newTab = { target: "_blank", rel: "noopener noreferrer" };
    expect(links).toEqual([
      { href: "https://docs.example.com/sorted?x=1", ...newTab, address: "docs.example.com/sorted?x=1" },
      { href: "https://example.com/a_b_c", ...newTab },
    ]);
    expect(wrong).toEqual([]);
    await close();
  });

  test("an answer that streams becomes the same elements as one that arrives at once", async () => {
    const { page, close } = await at.open();
    for (const name of ["sample", "code", "wide", "scripts", "numbers"]) {
      const made: string[] = [];
      for (const size of [1, 1_000_000]) {
        await show(page, name, size);
        // The part that draws formulas loads with the first one; until then, a formula is its source. Colours come later.
        await expect.poll(() => page.locator(`${rendered} .math`).count()).toBe(0);
        made.push(
          (await page.locator(rendered).innerHTML()).replace(/<(?:span class="(?:scope|code)-[^"]*"|\/span)>/g, ""),
        );
      }
      expect(made[0]?.length, name).toBeGreaterThan(50);
      expect(made[1], name).toBe(made[0]);
    }
    await close();
  });

  test("formulas are MathML; what is not closed, or cannot be read, is text", async () => {
    const { page, wrong, close } = await at.open();
    const scripts: string[] = [];
    page.on("request", (request) => scripts.push(new URL(request.url()).pathname));
    await show(page, "quotes");
    expect(scripts.filter((path) => path.includes("formula"))).toEqual([]);
    await show(page, "formulas", 3);
    await expect.poll(() => page.locator(`${rendered} math`).count()).toBe(5);
    await expect.poll(() => page.locator(`${rendered} div.formula`).count()).toBe(3);
    await expect.poll(() => texts(page, ".math")).toEqual(["$\\nosuchcommand{x}$"]);
    await expect.poll(() => lastAnswer(page)).toContain("and $5 or $6.");
    await expect.poll(() => lastAnswer(page)).toContain("Open: $$x + y");
    // Drawn as mathematics, not as a row of letters: a fraction is higher than a letter.
    const height = (selector: string): Promise<number> =>
      page
        .locator(`${rendered} ${selector}`)
        .first()
        .evaluate((one) => (one as unknown as Drawn).getBoundingClientRect().height);
    expect(await height("mfrac")).toBeGreaterThan(1.4 * (await height("mfrac mi")));
    await expectAccessible(page, "formulas");
    await page.getByRole("button", { name: "Raw text" }).first().click();
    await expect.poll(() => page.locator("math").count()).toBe(0);
    expect(wrong).toEqual([]);
    await close();
  });

  // A formula comes from a model, which may quote what somebody has put on the web.
  test("hostile formulas run nothing, load nothing, and leave the page responsive", async () => {
    const { page, wrong, close } = await at.open();
    await show(page, "formulas");
    await page.locator("math").first().waitFor();
    await show(page, "hostile-formulas", 4000);
    await show(page, "many-formulas", 4000);
    await expect.poll(() => page.locator(`${rendered} math`).count()).toBeGreaterThan(1000);
    expect(await page.evaluate("globalThis.ran")).toBeUndefined();
    const names = await page
      .locator(".formula *")
      .evaluateAll((all) => [...new Set(all.map((one) => (one as unknown as Drawn).namespaceURI))]);
    expect(names).toEqual(["http://www.w3.org/1998/Math/MathML"]);
    await page.getByLabel("Your message", { exact: true }).fill("still here");
    expect(wrong).toEqual([]);
    await close();
  });

  // Lists, quotes and tables in Hebrew or Arabic had their marks and lines on the wrong side.
  test("each block has the direction of its text; code is read from left to right", async () => {
    const { page, wrong, close } = await at.open();
    await show(page, "directions");
    const directions = (selector: string): Promise<string[]> =>
      page
        .locator(`${rendered} ${selector}`)
        .evaluateAll((all) => all.map((one) => (globalThis as unknown as Styles).getComputedStyle(one).direction));
    await expect.poll(() => directions(":is(h3, ul, blockquote, table)")).toEqual(["rtl", "rtl", "rtl", "rtl"]);
    await expect.poll(() => directions(".block > p")).toEqual(["rtl", "ltr"]);
    await expect.poll(() => directions("code")).toEqual(["ltr"]);
    const message = page.getByLabel("Your message", { exact: true });
    await message.fill("שלום");
    expect(await message.evaluate((one) => (globalThis as unknown as Styles).getComputedStyle(one).direction)).toBe(
      "rtl",
    );
    expect(wrong).toEqual([]);
    await close();
  });

  test("code is highlighted when it is complete, and copied as it was written", async () => {
    const { page, wrong, close } = await at.open();
    const scripts: string[] = [];
    page.on("request", (request) => scripts.push(new URL(request.url()).pathname));
    await show(page, "json");
    await show(page, "not-json");
    // JSON is code, too. The highlighting of a language that is not known is not asked for.
    await page.locator(".scope-attr").first().waitFor();
    expect(scripts.filter((path) => path.endsWith("highlighting-worker.js"))).toHaveLength(1);
    await show(page, "sample");
    await page.locator(`${rendered} .scope-keyword`, { hasText: "def" }).waitFor();
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const copy = page.locator(`${rendered} .code-bar button`).first();
    // By the keyboard.
    await copy.focus();
    await page.keyboard.press("Enter");
    await page.locator(`${rendered} .code-bar button`, { hasText: "Copied" }).waitFor();
    await page.locator("[role=status]", { hasText: "Copied" }).waitFor({ state: "attached" });
    await expect
      .poll(() => page.evaluate("navigator.clipboard.readText()"))
      .toBe("def sort(items: list[int]) -> list[int]:\n    return sorted(items)  # ascending");
    expect(wrong).toEqual([]);
    await close();
  });

  // Each chunk of long code cut off what was wider than the column.
  test("the end of a long line of long code can be scrolled to", async () => {
    const { page, close } = await at.open();
    await show(page, "long-code");
    await page.locator(`${rendered} .scope-string`).first().waitFor();
    await expect.poll(() => page.locator(`${rendered} .code-chunk`).count()).toBeGreaterThan(3);
    const widths = await page.locator(`${rendered} pre`).evaluate((element) => {
      const { scrollWidth, clientWidth } = element as unknown as { scrollWidth: number; clientWidth: number };
      const strings = element as unknown as { querySelectorAll(name: string): Iterable<{ offsetWidth: number }> };
      return {
        scrollWidth,
        clientWidth,
        line: [...strings.querySelectorAll(".scope-string")].at(-1)?.offsetWidth ?? 0,
      };
    });
    expect(widths.line).toBeGreaterThan(widths.clientWidth);
    expect(widths.scrollWidth).toBeGreaterThan(widths.line);
    const chunk = await page.locator(`${rendered} .code-chunk`).first().boundingBox();
    expect(chunk?.width).toBeGreaterThan(widths.line);
    await close();
  });

  test("JSON is shown with its lines and its numbers, and text that only begins like JSON as Markdown", async () => {
    const { page, close } = await at.open();
    await show(page, "json", 1);
    await expect
      .poll(() => lastAnswer(page))
      .toBe('{\n  "name": "Maria",\n  "big": 12345678901234567890,\n  "list": [\n    1,\n    {},\n    []\n  ]\n}');
    await show(page, "not-json", 1);
    await expect.poll(() => texts(page, "strong")).toEqual(["not"]);
    await close();
  });

  test("the raw text is one switch away, and the browser remembers it", async () => {
    const { page, wrong, close } = await at.open();
    await show(page, "code");
    const raw = "Here:\n\n````js\nconst one = 1;\n\n```\n````\n";
    await expect.poll(() => texts(page, "pre")).toEqual(["const one = 1;\n\n```\n"]);
    await page.getByRole("button", { name: "Raw text", pressed: false }).click();
    await page.getByRole("button", { name: "Raw text", pressed: true }).waitFor();
    await expect.poll(() => lastAnswer(page)).toBe(raw);
    await page.reload();
    await answered(page, 1);
    await page.getByRole("button", { name: "Raw text", pressed: true }).waitFor();
    await expect.poll(() => lastAnswer(page)).toBe(raw);
    await ask(page, "code");
    await expect.poll(() => lastAnswer(page)).toBe(raw);
    // One switch for all answers.
    await page.getByRole("button", { name: "Raw text" }).last().click();
    await expect.poll(() => page.locator(".answer .markdown.said pre").count()).toBe(2);
    await expect.poll(() => page.evaluate("localStorage.getItem('truewire-raw-text')")).toBe(null);
    expect(wrong).toEqual([]);
    await close();
  });

  test.each(looksOf(8))(
    "wide code, tables and deep lists stay in their column, axe finds nothing: %s",
    async (_, options) => {
      const { page, wrong, close } = await at.open("play", options);
      await show(page, "sample");
      await page.locator(`${rendered} .scope-keyword`).first().waitFor();
      await expectAccessible(page, "a sample");
      await show(page, "wide");
      await page.locator(`${rendered} .scope-string`).waitFor();
      await expectAccessible(page, "wide blocks");
      const column = (await page.locator(rendered).boundingBox())?.width ?? 0;
      for (const name of ["pre", ".table"]) {
        const box = page.locator(`${rendered} ${name}`).first();
        await expect.poll(async () => (await box.boundingBox())?.width).toBeLessThanOrEqual(column);
        const hidden = await box.evaluate(
          (element: { readonly scrollWidth: number; readonly clientWidth: number }) =>
            element.scrollWidth - element.clientWidth,
        );
        expect(hidden, name).toBeGreaterThan(0);
      }
      const scroller = page.locator(".scroller");
      await expect
        .poll(() =>
          scroller.evaluate(
            (element: { readonly scrollWidth: number; readonly clientWidth: number }) =>
              element.scrollWidth - element.clientWidth,
          ),
        )
        .toBe(0);
      expect(wrong).toEqual([]);
      await close();
    },
  );
}

function hostile(at: PageUnderTest): void {
  test("no script runs, nothing is loaded, and only http and https become links", async () => {
    const { page, wrong, close } = await at.open();
    await show(page, "scripts", 5);
    await page.locator(`${rendered} .scope-name`).first().waitFor();
    // Each unsafe thing is there as text.
    const text = await lastAnswer(page);
    for (const shown of [
      "<script>globalThis.ran = 1</script>",
      '<img src=x onerror="globalThis.ran = 1">',
      "[a](javascript:globalThis.ran=1)",
      "[h](//evil.example)",
      "[i](/admin)",
    ])
      expect(text).toContain(shown);
    const hrefs = await page
      .locator(`${rendered} a`)
      .evaluateAll((all) => all.map((link) => [link.textContent, (link as unknown as { href: string }).href]));
    expect(hrefs).toEqual([
      // Addresses in the text of HTML.
      ["https://evil.example/", "https://evil.example/"],
      ["https://evil.example", "https://evil.example/"],
      ["Image: cat", "https://evil.example/cat.png"],
      ["Image", "https://evil.example/none.png"],
      ["Image: in", "https://evil.example/out"],
      ["https://bank.example", "https://evil.example/login"],
      ["ok", "https://good.example/"],
      ["https://evil.example/x.png", "https://evil.example/x.png"],
    ]);
    // A text that looks like another address does not hide the real one.
    await expect
      .poll(() => page.locator(`${rendered} a`).nth(5).getAttribute("data-address"))
      .toBe("evil.example/login");
    const elements = await page
      .locator(`${rendered} *`)
      .evaluateAll((all) => [...new Set(all.map(({ tagName }) => tagName.toLowerCase()))].toSorted());
    expect(elements).toEqual(
      ["a", "button", "code", "div", "p", "pre", "span", "table", "tbody", "td", "th", "thead", "tr"].toSorted(),
    );
    const attributes = await page
      .locator(`${rendered} *`)
      .evaluateAll((all) =>
        all.flatMap((element) => element.getAttributeNames().filter((name: string) => /^on|^src|^style/.test(name))),
      );
    expect(attributes).toEqual([]);
    expect(await page.evaluate("globalThis.ran")).toBeUndefined();
    expect(wrong).toEqual([]);
    await close();
  });

  test("the page stays responsive to each, and no wider than a phone", async () => {
    const { page, wrong, close } = await at.open("play", { viewport: { width: 390, height: 800 } });
    for (const name of [
      "quotes",
      "quote-lines",
      "lists",
      "nested-lines",
      "table",
      "wide-table",
      "fence",
      "line",
      "code-line",
      "brackets",
      "emphasis",
      "item",
      "regex",
    ]) {
      await show(page, name, 400);
      await page.getByLabel("Your message", { exact: true }).fill("json 7");
      // It is usable, and shows the next answer.
      await page.keyboard.press("Enter");
      await expect.poll(() => page.locator(".answer").count()).toBe(2);
      await page.locator(".answer").nth(1).locator(".scope-attr").first().waitFor();
      await expectFits(page, name);
      await page.evaluate("location.hash = '#play'");
      await page.locator(".answer").first().waitFor({ state: "detached" });
    }
    expect(wrong).toEqual([]);
    await close();
  });
}
