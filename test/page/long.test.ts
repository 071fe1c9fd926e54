import { resolve } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { answered, hasBrowser, lastAnswer, launchBrowser, openPage } from "../support/open-page.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";

/** Notes the times between frames; a number each, in milliseconds. */
const watchFrames = `
  globalThis.frames = [];
  let before = performance.now();
  const next = (now) => { globalThis.frames.push(now - before); before = now; requestAnimationFrame(next); };
  requestAnimationFrame(next);
`;

/** The longest pause that a person may meet, in milliseconds; on a busy machine, too. */
const longestPause = 3000;

/** Of some times, the one in the middle. */
function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0;
}

describe.skipIf(!hasBrowser)("long answers", () => {
  let server: RunningTruewire;
  let browser: Browser;
  beforeAll(async () => {
    server = await startTruewire([resolve("test/page/talker.js")]);
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  test.each([
    ["100,000 tokens as fast as they come", "long 100000", 100_000],
    ["200 tokens a second", "long 2000 200", 2000],
    ["one line without an end", "line 30000", 30_000],
  ])("%s: the tab stays alive, and every word is there", { timeout: 180_000 }, async (name, question, count) => {
    const { page, wrong, close } = await openPage(browser, `${server.url}/`);
    await page.evaluate(watchFrames);
    await page.getByLabel("Your message", { exact: true }).fill(question);
    await page.keyboard.press("Enter");
    await page.locator(".answer .said").waitFor();
    // What is written meanwhile arrives while the answer grows.
    await page.getByLabel("Your message", { exact: true }).pressSequentially("and then?");
    await answered(page, 1);
    const frames = (await page.evaluate("globalThis.frames.splice(0)")) as number[];
    const sorted = frames.toSorted((a, b) => a - b);
    const at = (part: number): string => (sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(1);
    const facts = await page.locator(".facts").textContent();
    console.log(
      `${name}: ${frames.length} frames, ms each: median ${at(0.5)}, 99 % ${at(0.99)}, longest ${at(1)}; ${facts}`,
    );
    expect(sorted.at(-1)).toBeLessThan(longestPause);
    // A page that lays the whole answer out anew for a word more gets slower and slower: five times, from the first third to the last.
    const third = Math.floor(frames.length / 3);
    expect(median(frames.slice(-third))).toBeLessThan(3 * median(frames.slice(0, third)) + 50);
    const text = await lastAnswer(page);
    expect(text.trim().split(/\s+/)).toEqual(Array.from({ length: count }, (_, at) => `w${at}`));
    // The reader was at the end, and stays there.
    const fromEnd = await page.evaluate(
      "(() => { const box = document.querySelector('.scroller'); return box.scrollHeight - box.scrollTop - box.clientHeight; })()",
    );
    expect(fromEnd).toBeLessThan(60);
    expect(await page.getByLabel("Your message", { exact: true }).inputValue()).toBe("and then?");
    expect(wrong).toEqual([]);
    await close();
  });

  test("who scrolls back is not pulled to the end", async () => {
    const { page, close } = await openPage(browser, `${server.url}/`);
    await page.getByLabel("Your message", { exact: true }).fill("long 3000 600");
    await page.keyboard.press("Enter");
    await page.locator(".answer .said", { hasText: "w600" }).waitFor();
    await page.locator(".scroller").hover();
    await page.mouse.wheel(0, -100_000);
    // A browser moves by a line or so when what is above gets its size; the answer has hundreds of lines.
    const fromStart = (): Promise<number> =>
      page.locator(".scroller").evaluate((box: { readonly scrollTop: number }) => box.scrollTop);
    await expect.poll(fromStart).toBeLessThan(100);
    await answered(page, 1);
    expect(await fromStart()).toBeLessThan(100);
    const length = await page
      .locator(".scroller")
      .evaluate(
        (box: { readonly scrollHeight: number; readonly clientHeight: number }) => box.scrollHeight - box.clientHeight,
      );
    expect(length).toBeGreaterThan(500);
    await close();
  });
});
