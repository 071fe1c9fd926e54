import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";
import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { findChromium } from "./chromium.ts";

const executablePath = findChromium();

/** Whether there is a browser to test the page in. */
export const hasBrowser: boolean = executablePath !== undefined;
if (!hasBrowser) console.log("skipped: no Chromium (CHROME_PATH, or on the PATH) to open the page in");

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: executablePath ?? "", args: ["--no-sandbox", "--disable-dev-shm-usage"] });
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
  await expect.poll(state, { timeout: 60_000 }).toEqual([count, 0]);
}

/** The text of the last answer. */
export function lastAnswer(page: Page): Promise<string> {
  return page
    .locator(".answer")
    .last()
    .locator(".said")
    .first()
    .evaluate((element: { readonly textContent: string | null }) => element.textContent ?? "");
}

const axeSource = readFileSync(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** That axe finds nothing against WCAG 2.2 AA, nor against its own best practices, in what the page now shows. */
export async function expectAccessible(page: Page, state: string): Promise<void> {
  // By the debugger's own way: the page's policy lets no script in. The size of targets is WCAG 2.2's, which axe leaves out by default.
  await page.evaluate(axeSource);
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<{ violations: Violation[] }> } };
    return (await axe.run({ rules: { "target-size": { enabled: true } } })).violations;
  });
  const told = violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${help}: ${html}: ${failureSummary}`),
  );
  expect(told, state).toEqual([]);
}
