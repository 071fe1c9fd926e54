import { createServer, type ServerResponse } from "node:http";
import type { Page } from "playwright-core";
import { beforeEach, expect, test } from "vitest";
import { describePage, openPlayForEach } from "../support/describe-page.ts";
import { answered, expectAccessible, expectFits } from "../support/open-page.ts";
import { otherServers } from "../support/other-servers.ts";
import { json } from "../support/transports.ts";

const path = (name: string): string => new URL(`../hosted/${name}`, import.meta.url).pathname;
const page1 = { url: "https://truewire.example/notes", title: "Release notes", content: "Version 2 is faster." };

/** Searches that wait for their results. */
const waiting: ServerResponse[] = [];
const searxng = createServer((_request, response) => void waiting.push(response));
const listening = otherServers();
function found(): void {
  const body = JSON.stringify({ results: [page1] });
  for (const response of waiting.splice(0)) response.writeHead(200, { "content-type": "application/json" }).end(body);
}

async function serve(): Promise<string[]> {
  const url = await listening(searxng);
  const run = `code_interpreter=${path("run-code.mjs")}`;
  const mcp = `--mcp=test=${path("mcp-server.mjs")}`;
  return [`model=${path("calling-model.mjs")}`, `--web-search=${url}`, `--hosted-program=${run}`, mcp];
}

describePage("Calls that run on the server", serve, (at) => {
  let page: Page;
  let asked: Record<string, unknown>[];
  openPlayForEach(at, (opened) => ({ page, asked } = opened));
  beforeEach(() => void waiting.splice(0));

  test("Play shows a search while it runs and when it is done, and its pages as links; a reload keeps them", async () => {
    await page.locator("#settings summary", { hasText: "Tools" }).click();
    await page.getByLabel("web_search, if this server runs it").check();
    await page.getByLabel("Your message", { exact: true }).fill('web_search {"query":"release notes"}');
    await page.keyboard.press("Enter");
    const call = page.locator(".call.hosted");
    await expect.poll(() => call.locator("summary").textContent()).toBe("web_search release notes runs…");
    expect(asked[0]).toMatchObject({ hosted_tools: ["web_search"], include_hosted_calls: true });
    await expect.poll(() => waiting.length).toBe(1);
    found();
    await answered(page, 1);
    const summary = /^web_search release notes succeeded · [\d.]+ m?s$/;
    await expect.poll(() => call.locator("summary").textContent()).toMatch(summary);
    await call.locator("summary").click();
    await call.getByLabel("Result of web_search").getByText("Version 2 is faster.").waitFor();
    const link = page.getByRole("region", { name: "Sources" }).getByRole("link", { name: page1.title });
    expect(await link.getAttribute("href")).toBe(page1.url);
    await expectAccessible(page, "a search");
    await expectFits(page, "a search");
    await page.reload();
    await expect.poll(() => page.locator(".call.hosted summary").textContent()).toMatch(summary);
    await page.getByRole("region", { name: "Sources" }).waitFor();
  });

  test("Play shows a call of an MCP server and one of code, with arguments, result and error", async () => {
    await page.locator("#settings summary", { hasText: "Tools" }).click();
    await page.getByLabel("test, if this server runs it").check();
    await page.getByLabel("code_interpreter, if this server runs it").check();
    const call = page.locator(".call.hosted").last();
    const send = async (text: string, count: number): Promise<void> => {
      await page.getByLabel("Your message", { exact: true }).fill(text);
      await page.keyboard.press("Enter");
      await answered(page, count);
      await call.locator("summary").click();
    };
    await send('mcp__test__add {"a":2,"b":3}', 1);
    await expect.poll(() => call.locator("summary").textContent()).toMatch(/^test: add .*succeeded · [\d.]+ m?s$/);
    expect(await call.getByLabel("Arguments of test: add").textContent()).toContain('"a": 2');
    expect(await call.getByLabel("Result of test: add").textContent()).toBe("5");
    await send('code_interpreter {"code":"throw"}', 2);
    await expect.poll(() => call.locator("summary").textContent()).toMatch(/^code_interpreter throw failed · /);
    expect(await call.getByLabel("Result of code_interpreter").textContent()).toContain("division by zero");
  });

  test("Inspect shows what each call was asked, what came back, how long it took, and why it failed, in each API", async () => {
    const search = 'web_search {"query":"release notes"}';
    const pending = [
      fetch(
        `${at.server.url}/v1/responses`,
        json({ model: "model", input: search, tools: [{ type: "web_search" }], stream: true }),
      ),
      fetch(
        `${at.server.url}/v1/messages`,
        json({
          model: "model",
          max_tokens: 100,
          messages: [{ role: "user", content: search }],
          tools: [{ type: "web_search_20250305", name: "web_search" }],
        }),
      ),
    ];
    await expect.poll(() => waiting.length).toBe(2);
    found();
    for (const response of pending) await (await response).text();
    const code = { type: "code_interpreter", container: { type: "auto" } };
    const failing = { model: "model", input: 'code_interpreter {"code":"throw"}', tools: [code] };
    await (await fetch(`${at.server.url}/v1/responses`, json(failing))).text();
    await page.getByRole("link", { name: "Inspect" }).click();
    const rows = page.locator(".request-row");
    await expect.poll(() => rows.count()).toBeGreaterThanOrEqual(3);
    const answer = page.locator('[data-part="answer"]');
    await rows.nth(0).click();
    const failed = answer.getByRole("region", { name: "Call of code_interpreter" });
    await expect.poll(() => failed.textContent()).toMatch(/run here · failed after [\d,]+ ms/);
    expect(await failed.textContent()).toContain("division by zero");
    for (const row of [1, 2]) {
      await rows.nth(row).click();
      const call = answer.getByRole("region", { name: "Call of web_search" });
      await expect.poll(() => call.textContent()).toMatch(/run here · succeeded after [\d,]+ ms/);
      const text = await call.textContent();
      expect(text).toContain("release notes");
      expect(text).toContain(page1.url);
    }
    await expectAccessible(page, "a hosted call in Inspect");
  });
});
