import { expect, test } from "vitest";
import { answered, ask, lastAnswer } from "../support/open-page.ts";
import { describePage, pageSize, talker } from "../support/describe-page.ts";

/**
 * Notes what the page does for a growing answer: frames, how often it changed the text, changes of a block after a later one was begun,
 * what was removed, and which blocks the browser leaves out of its layout.
 */
const watchWork = `
  globalThis.work = { frames: 0, changes: 0, late: 0, removed: 0, skipped: new Set() };
  const nextFrame = () => { work.frames++; requestAnimationFrame(nextFrame); };
  requestAnimationFrame(nextFrame);
  let last = 0;
  const blockOf = (node) => (node.nodeType === 1 ? node : node.parentElement).closest(".block");
  new MutationObserver((records) => {
    const ofText = records.filter(({ target }) => blockOf(target));
    if (ofText.length > 0) work.changes++;
    for (const { target, removedNodes } of ofText) {
      work.removed += removedNodes.length;
      const at = [...blockOf(target).parentElement.children].indexOf(blockOf(target));
      if (at < last) work.late++;
      last = at;
    }
  }).observe(document.querySelector(".scroller"), { subtree: true, childList: true, characterData: true });
  document.addEventListener("contentvisibilityautostatechange", ({ target, skipped }) => {
    work.skipped[skipped ? "add" : "delete"](target);
  }, true);
`;

interface Work {
  readonly frames: number;
  readonly changes: number;
  readonly late: number;
  readonly removed: number;
  /** Blocks of the answer, and those of them that are laid out. */
  readonly blocks: number;
  readonly laidOut: number;
}

const workDone = `(() => {
  const { skipped, ...work } = globalThis.work;
  const blocks = [...document.querySelectorAll(".said .block")];
  return { ...work, blocks: blocks.length, laidOut: blocks.filter((block) => !skipped.has(block)).length };
})()`;

/** As many blocks as fit into the window and into what a browser lays out around it. */
const mostLaidOut = 8;

describePage("long answers", [talker], (at) => {
  test.each([
    ["as fast as they come", "long", 20_000 * pageSize, ""],
    ["200 tokens a second", "long", 600 * pageSize, " 200"],
    ["one line without an end", "line", 15_000 * pageSize, ""],
  ])("%s: the tab stays alive, and every word is there", async (_, kind, count, rate) => {
    const { page, wrong, close } = await at.open();
    // Markdown is loaded with the first answer, which is then rendered again.
    await ask(page, "hello");
    await page.locator(".markdown").waitFor();
    await page.evaluate(watchWork);
    await page.getByLabel("Your message", { exact: true }).fill(`${kind} ${count}${rate}`);
    await page.keyboard.press("Enter");
    await page.locator(".answer .said").nth(1).waitFor();
    // What is written meanwhile arrives while the answer grows.
    await page.getByLabel("Your message", { exact: true }).pressSequentially("and then?");
    await answered(page, 2);
    const work = (await page.evaluate(workDone)) as Work;
    // However many words come within a frame, the text changes once; and only at its end.
    expect(work.changes).toBeGreaterThan(1);
    expect(work.changes).toBeLessThanOrEqual(work.frames + 1);
    expect([work.late, work.removed]).toEqual([0, 0]);
    expect(work.blocks).toBeGreaterThan((count * 5) / 6000);
    const laidOut = async (): Promise<number> => ((await page.evaluate(workDone)) as Work).laidOut;
    await expect.poll(laidOut).toBeLessThanOrEqual(mostLaidOut);
    const words = async (): Promise<string[]> => (await lastAnswer(page)).trim().split(/\s+/);
    await expect.poll(words).toEqual(Array.from({ length: count }, (_, at) => `w${at}`));
    // The reader was at the end, and stays there.
    const fromEnd = (): Promise<unknown> =>
      page.evaluate(
        "(() => { const box = document.querySelector('.scroller'); return box.scrollHeight - box.scrollTop - box.clientHeight; })()",
      );
    await expect.poll(fromEnd).toBeLessThan(60);
    await expect.poll(() => page.getByLabel("Your message", { exact: true }).inputValue()).toBe("and then?");
    expect(wrong).toEqual([]);
    await close();
  });

  test("who scrolls back is not pulled to the end", async () => {
    const { page, close } = await at.open();
    await page.getByLabel("Your message", { exact: true }).fill("long 100000 600");
    await page.keyboard.press("Enter");
    await page.locator(".answer .said", { hasText: "w600" }).waitFor();
    await page.locator(".scroller").hover();
    const fromStart = (): Promise<number> =>
      page.locator(".scroller").evaluate((box: { readonly scrollTop: number }) => box.scrollTop);
    // A browser moves when what is above gets its size, on a busy machine after the first turn of the wheel.
    await expect
      .poll(async () => {
        await page.mouse.wheel(0, -100_000);
        return fromStart();
      })
      .toBeLessThan(100);
    // It goes on for fifty lines more, and the reader stays.
    const words = async (): Promise<number> => (await lastAnswer(page)).split(" ").length;
    const before = await words();
    await expect.poll(words).toBeGreaterThan(before + 600);
    expect(await fromStart()).toBeLessThan(100);
    await page.getByRole("button", { name: "Stop" }).click();
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
