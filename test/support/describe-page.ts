import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from "vitest";
import { hasBrowser, launchBrowser, openPage } from "./open-page.ts";
import type { Tab } from "./open-page.ts";
import { startTruewire } from "./serve.ts";
import type { RunningTruewire } from "./serve.ts";

/** A server and a browser that the tests of one `describePage` share. */
export interface PageUnderTest {
  readonly server: RunningTruewire;
  readonly browser: Browser;
  /** Opens the page in a tab of its own; `view` as the address has it. */
  open(view?: "play" | "models" | "keys" | "inspect" | "check", options?: BrowserContextOptions): Promise<Tab>;
}

/**
 * Tests of the page in a browser, at a server with these arguments (or those that a function makes first); skipped where there is no browser.
 */
export function describePage(
  title: string,
  args: readonly string[] | (() => Promise<readonly string[]>),
  tests: (at: PageUnderTest) => void,
): void {
  describe.skipIf(!hasBrowser)(title, () => {
    let server: RunningTruewire;
    let browser: Browser;
    beforeAll(async () => {
      server = await startTruewire(typeof args === "function" ? await args() : args);
      browser = await launchBrowser();
    });
    afterAll(() => server?.stop());
    tests({
      get server() {
        return server;
      },
      get browser() {
        return browser;
      },
      open: (view = "play", options = {}) => openPage(browser, `${server.url}/#${view}`, options),
    });
  });
}

/** Opens Play in a new tab before each test; after it, closes the tab and expects that nothing was wrong in it. `use` gets the tab. */
export function openPlayForEach(
  at: PageUnderTest,
  use: (opened: {
    readonly page: Page;
    /** The bodies of the requests of this tab. */
    readonly asked: Record<string, unknown>[];
  }) => void,
): void {
  let tab: Tab | undefined;
  beforeEach(async () => {
    const asked: Record<string, unknown>[] = [];
    tab = await at.open();
    tab.page.on("request", (request) => {
      if (request.method() === "POST") asked.push(request.postDataJSON() as Record<string, unknown>);
    });
    use({ page: tab.page, asked });
  });
  afterEach(async ({ task }) => {
    // A test that waits in vain does not say what it saw.
    if (tab && task.result?.state === "fail") console.log(`the page at the end:\n${await textOf(tab.page)}`);
    await tab?.close();
    expect(tab?.wrong).toEqual([]);
  });
}

/** What the page shows, or that its scripts do not run. */
async function textOf(page: Page): Promise<string> {
  const busy = new Promise<string>((resolve) => setTimeout(resolve, 5000, "it does not answer").unref());
  return Promise.race([page.evaluate<string>("document.body.innerText").catch(String), busy]);
}

/** The program that answers these tests. */
export const talker = "test/page/talker.js";

/** How many times as long as usual the long answers, bodies and captures of these tests are. `npm run nightly` sets it to 5. */
export const pageSize: number = Number(process.env["TRUEWIRE_PAGE_SIZE"] ?? 1);

/**
 * What a view of the page must be right in: both colours, and a wide window and a phone. Colours do not depend on the width, so by day each is
 * looked at once; at night, each in both.
 */
export const looks: readonly (readonly [string, Look])[] = (
  [
    ["light, wide", { colorScheme: "light", viewport: { width: 1280, height: 800 } }],
    ["dark, a phone", { colorScheme: "dark", viewport: { width: 320, height: 640 } }],
    ["dark, wide", { colorScheme: "dark", viewport: { width: 1280, height: 800 } }],
    ["light, a phone", { colorScheme: "light", viewport: { width: 320, height: 640 } }],
  ] as const
).slice(0, pageSize > 1 ? 4 : 2);

/** The same of a view whose parts others have, too: by day, `dark, a phone` for odd numbers and `light, wide` for even ones. */
export function looksOf(view: number): readonly (readonly [string, Look])[] {
  return pageSize > 1 ? looks : looks.filter((_, at) => at === view % 2);
}

interface Look extends BrowserContextOptions {
  readonly viewport: { readonly width: number; readonly height: number };
}
