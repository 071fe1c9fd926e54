import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";
import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { findChromium } from "./chromium.ts";
import { waitMs } from "./hang.ts";

const executablePath = findChromium();

/** Whether there is a browser to test the page in. */
export const hasBrowser: boolean = executablePath !== undefined;
if (!hasBrowser) console.log("skipped: no Chromium (CHROME_PATH, or on the PATH) to open the page in");

/**
 * What a test does not look at, and a browser works on: Chromium opens two pages for its own address field with each window, which take more
 * time than the page that is tested. Of several `--disable-features`, Chromium reads the last one, so those that Playwright names are lost.
 */
const idleFeatures = [
  "WebUIOmniboxPopup",
  "WebUIOmniboxFullPopup",
  "WebUIOmniboxAimPopup",
  "HttpsUpgrades",
  "LensOverlay",
  "MediaRouter",
  "OptimizationHints",
  "PaintHolding",
];

let launched: Promise<Browser> | undefined;

/** The browser of all tests of this process. It ends with the process. */
export function launchBrowser(): Promise<Browser> {
  launched ??= chromium.launch({
    executablePath: executablePath ?? "",
    args: ["--no-sandbox", "--disable-dev-shm-usage", `--disable-features=${idleFeatures.join(",")}`],
  });
  return launched;
}

/** A tab with what went wrong in it. */
export interface Tab {
  readonly page: Page;
  /** Errors of scripts and of the Content-Security-Policy, and requests that left the server's own origin. */
  readonly wrong: readonly string[];
  close(): Promise<void>;
}

/** Opens the page in a context of its own (no storage shared), and waits until it shows the server's models, or asks for a key. */
export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Tab> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(waitMs);
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on("pageerror", (error) => wrong.push(String(error.stack)));
  page.on("console", (message) => {
    // A browser tells of each status from 400 on; tests ask for some.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) wrong.push(message.text());
  });
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== "data:" && origin !== new URL(url).origin) wrong.push(`asked ${request.url()}`);
  });
  await page.goto(url);
  await modelsOf(page).or(page.locator("dialog")).first().waitFor({ state: "attached" });
  return { page, wrong, close: () => context.close() };
}

/** The models that can be chosen. */
export function modelsOf(page: Page): Locator {
  return page.getByLabel("Model", { exact: true }).locator("option");
}

/** Writes a message, asks, and waits until the answer is complete. */
export async function ask(page: Page, text: string): Promise<void> {
  // Before the page knows the models, for example after a reload, nothing can be asked.
  await modelsOf(page).first().waitFor({ state: "attached" });
  const answers = await page.locator(".answer").count();
  await page.getByLabel("Your message", { exact: true }).fill(text);
  await page.keyboard.press("Enter");
  await answered(page, answers + 1);
}

/** Waits until there are so many answers, all complete. */
export async function answered(page: Page, count: number): Promise<void> {
  const answers = page.locator(".answer");
  const state = async (): Promise<unknown> => [
    await answers.count(),
    await page.locator(".answer[aria-busy=true]").count(),
  ];
  await expect.poll(state).toEqual([count, 0]);
}

interface TextElement {
  readonly textContent: string | null;
  cloneNode(deep: boolean): TextElement;
  querySelectorAll(selector: string): Iterable<{ remove(): void }>;
}

/** The text of the last answer, without the languages and buttons of its code. */
export function lastAnswer(page: Page): Promise<string> {
  return page
    .locator(".answer")
    .last()
    .locator(".said")
    .first()
    .evaluate((element: TextElement) => {
      const copy = element.cloneNode(true);
      for (const bar of copy.querySelectorAll(".code-bar")) bar.remove();
      return copy.textContent ?? "";
    });
}

const axeSource = readFileSync(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/**
 * How wide the letters of a text are on average, in em: in the narrowest common font (Liberation Sans Narrow has Arial Narrow's widths), and
 * in the widest (Verdana; DejaVu Sans has 0.57).
 */
const letterWidths = { narrowest: 0.43, widest: 0.6 } as const;

/**
 * Expects that the page needs no more than the width of the window (WCAG 2.2, 1.4.10), with letters as wide as those of the narrowest and of
 * the widest common font. Spacing makes the letters of the installed font that wide, so that the result is the same on every machine.
 */
export async function expectFits(page: Page, state: string): Promise<void> {
  const isWide = (page.viewportSize()?.width ?? 0) > 900;
  for (const [font, width] of Object.entries(letterWidths)) {
    // A window that has room for the widest letters has room for all.
    if (isWide && font !== "widest") continue;
    const outside = await page.evaluate((width) => {
      const { document, CSSStyleSheet, getComputedStyle, innerWidth } = globalThis as unknown as BrowserGlobals;
      const context = document.createElement("canvas").getContext("2d");
      const text = "The quick brown fox jumps over the lazy dog. 0123456789 ABCDEFGHIJKLMNOPQRSTUVWXYZ";
      context.font = `100px ${getComputedStyle(document.body).fontFamily}`;
      const spacing = width - context.measureText(text).width / text.length / 100;
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(`* { letter-spacing: ${spacing}em !important }`);
      document.adoptedStyleSheets = [sheet];
      const { scrollWidth } = document.documentElement;
      const wide = [...document.querySelectorAll("body *")].filter(
        (one) => one.getBoundingClientRect().right > innerWidth + 0.5,
      );
      document.adoptedStyleSheets = [];
      if (scrollWidth <= innerWidth) return [];
      return [
        `${scrollWidth} px of ${innerWidth}`,
        ...wide.slice(0, 20).map((one) => `${one.outerHTML.slice(0, 160)}`),
      ];
    }, width);
    expect(outside, `${state}, in the ${font} font`).toEqual([]);
  }
}

/** What `expectFits` uses in the browser, whose types are not those of Node. */
interface BrowserGlobals {
  readonly innerWidth: number;
  readonly CSSStyleSheet: new () => { replaceSync(css: string): void };
  getComputedStyle(element: unknown): { readonly fontFamily: string };
  readonly document: {
    readonly body: unknown;
    readonly documentElement: { readonly scrollWidth: number };
    adoptedStyleSheets: unknown[];
    createElement(name: "canvas"): {
      getContext(kind: "2d"): { font: string; measureText(text: string): { readonly width: number } };
    };
    querySelectorAll(
      selector: string,
    ): Iterable<{ readonly outerHTML: string; getBoundingClientRect(): { readonly right: number } }>;
  };
}

/** That axe finds nothing against WCAG 2.2 AA, nor against its own best practices, in what the page now shows; and that it fits. */
export async function expectAccessible(page: Page, state: string): Promise<void> {
  // By the debugger's own way: the page's policy lets no script in. The size of targets is WCAG 2.2's, which axe leaves out by default.
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axeSource);
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<{ violations: Violation[] }> } };
    const options = {
      rules: { "target-size": { enabled: true } },
      resultTypes: ["violations"],
      preload: false,
    };
    return (await axe.run(options)).violations;
  });
  const told = violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${help}: ${html}: ${failureSummary}`),
  );
  expect(told, state).toEqual([]);
  await expectFits(page, state);
}
