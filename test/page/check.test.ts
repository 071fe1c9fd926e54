import { createServer } from "node:http";
import type { Server } from "node:http";
import { readFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import type { Locator, Page } from "playwright-core";
import { expectAccessible, expectFits } from "../support/open-page.ts";
import { describePage, looksOf, talker } from "../support/describe-page.ts";
import { otherServers } from "../support/other-servers.ts";
import { startTruewire } from "../support/serve.ts";
import { chat } from "../support/transports.ts";
import { groq } from "../doubles/groq.ts";
import { startChat } from "../doubles/chat-server.ts";
import type { Double } from "../doubles/chat-server.ts";

/** A server whose streams have no end mark, and whose lists are fine. */
function spoiledServer(): Server {
  return createServer((request, response) => {
    if (request.method === "GET") {
      response.setHeader("content-type", "application/json");
      return void response.end(
        '{"object":"list","data":[{"id":"spoiled","object":"model","created":1,"owned_by":"me"}]}',
      );
    }
    response.setHeader("content-type", "text/event-stream");
    response.end('data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"<b>Hi</b>"}}]}\n\n');
  });
}

function report(page: Page, url: string): Locator {
  return page.getByRole("region", { name: `Report on ${url}` });
}

const checkButton = (page: Page): Locator => page.getByRole("button", { name: "Check", exact: true });

describePage("Check", [talker], (at) => {
  const listening = otherServers();

  test("the page's own server: every probe is seen, and the report is the one of the command", async () => {
    const { page, wrong, close } = await at.open("check");
    const url = `${at.server.url}/v1`;
    await expect.poll(() => page.getByLabel("Base URL").inputValue()).toBe(url);
    await expectAccessible(page, "nothing checked");
    await page.getByLabel("What is asked").selectOption("models");
    await checkButton(page).click();
    await report(page, url).waitFor();
    const rows = page.getByRole("region", { name: "Table of probes" }).locator("tbody tr");
    await expect.poll(() => rows.count()).toBeGreaterThan(1);
    await expect.poll(() => rows.first().textContent()).toContain("✓ passed");
    await expect
      .poll(() => report(page, url).textContent())
      .toMatch(/^.*, model talker0 errors, 0 warnings, .*rules passed/s);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save as HTML" }).click(),
    ]);
    const html = readFileSync(await download.path(), "utf8");
    expect(html).toMatch(/^<!doctype html>.*What was sent and what came back/s);
    const saved = await at.browser.newPage();
    await saved.setContent(html);
    await expectAccessible(saved, "the saved report");
    await saved.close();
    expect(wrong).toEqual([]);
    await close();
  });

  test.each(looksOf(2))("two servers side by side: %s", async (_, options) => {
    const spoiled = `${await listening(spoiledServer())}/v1`;
    const url = `${at.server.url}/v1`;
    const { page, wrong, close } = await at.open("check", options);
    await page.getByRole("button", { name: "Add a second server" }).click();
    await page.getByLabel("Base URL").nth(1).fill(spoiled);
    await page.getByLabel("What is asked").selectOption("completions");
    await checkButton(page).click();
    await report(page, url).waitFor();
    await report(page, spoiled).waitFor();
    // The same probe with both: what differs is marked, and can be seen alone.
    const table = page.getByRole("region", { name: "Table of probes" });
    const streamed = table.locator("tbody tr", { has: page.getByText("completion/stream", { exact: true }) });
    await expect.poll(() => streamed.locator(".chip").textContent()).toBe("differs");
    await expect.poll(() => streamed.locator("td").first().textContent()).toContain("passed");
    await expect.poll(() => streamed.locator("td").nth(1).textContent()).toMatch(/✗ \d+ errors/);
    await page.getByLabel("Show").selectOption("differences");
    await expect.poll(() => table.locator("tbody tr", { hasNot: page.locator(".chip") }).count()).toBe(0);
    await expect.poll(() => table.locator("tbody tr").count()).toBeGreaterThan(0);
    await page.getByRole("region", { name: "Table of rules" }).getByText("✗ broken (error)").first().waitFor();
    const [one, other] = await Promise.all([report(page, url).boundingBox(), report(page, spoiled).boundingBox()]);
    if (options.viewport.width > 900) expect(one?.y).toBe(other?.y);
    else expect(other?.y).toBeGreaterThan((one?.y ?? 0) + (one?.height ?? Infinity) - 1);
    // A place of the report leads to what came back, in the same report, and the view stays.
    const link = report(page, spoiled).getByRole("link", { name: "completion/stream" }).first();
    await link.click();
    expect(page.url()).toMatch(/#check$/);
    const body = report(page, spoiled).getByRole("group", { name: "Body of completion/stream" });
    await expect.poll(() => body.textContent()).toContain("<b>Hi</b>");
    await body.waitFor();
    await expectFits(page, "at the end");
    await expectAccessible(page, "two reports");
    expect(wrong).toEqual([]);
    await close();
  });

  test("who stops it, or leaves, ends it; the key is kept nowhere", async () => {
    const keys = new Set<string | undefined>();
    let open = 0;
    const mute = createServer((request, response) => {
      keys.add(request.headers.authorization);
      if (request.method === "GET") return void response.end('{"data":[{"id":"mute"}]}');
      open++;
      response.on("close", () => open--);
    });
    const url = `${await listening(mute)}/v1`;
    const { page, wrong, close } = await at.open("check");
    await page.getByLabel("Base URL").fill(url);
    await page.getByLabel("Key for it").fill("sk-checked-0123456789");
    await page.getByLabel("What is asked").selectOption("chat");
    await checkButton(page).click();
    await expect.poll(() => open).toBe(2);
    expect(keys).toEqual(new Set(["Bearer sk-checked-0123456789"]));
    expect(await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])")).toBe(
      '[{},{},""]',
    );
    await page.getByRole("button", { name: "Stop" }).click();
    await page.locator(".banner", { hasText: "Stopped before the end" }).waitFor();
    await expect.poll(() => open).toBe(0);
    await checkButton(page).click();
    await expect.poll(() => open).toBe(2);
    await page.close();
    await expect.poll(() => open).toBe(0);
    expect(at.server.stderr()).not.toContain("0123456789");
    expect(wrong).toEqual([]);
    await close();
  });

  test("a server that is not there is told in words, and the next one is checked", async () => {
    const { page, wrong, close } = await at.open("check");
    await page.getByLabel("Base URL").fill("http://127.0.0.1:1/v1");
    await checkButton(page).click();
    await page.locator(".banner.wrong", { hasText: "http://127.0.0.1:1/v1 does not answer" }).waitFor();
    await page.getByLabel("Base URL").fill(`${at.server.url}/v1`);
    await page.getByLabel("What is asked").selectOption("models");
    await checkButton(page).click();
    await report(page, `${at.server.url}/v1`).waitFor();
    await expect.poll(() => page.locator(".banner.wrong").count()).toBe(0);
    expect(wrong).toEqual([]);
    await close();
  });

  test("where there is an admin key, it is asked for, and kept for this tab", async () => {
    const server = await startTruewire([talker, "--admin-key", "admin-0123456789abcdef"]);
    const { page, close } = await at.open("check");
    await page.goto(`${server.url}/#check`);
    await page.getByLabel("What is asked").selectOption("models");
    await checkButton(page).click();
    await page.locator(".banner", { hasText: "The admin API needs an admin key" }).waitFor();
    await page.getByLabel("Admin key of this page's server").fill("admin-0123456789abcdef");
    await checkButton(page).click();
    await report(page, `${server.url}/v1`).waitFor();
    await expect.poll(() => page.evaluate("[localStorage.length, sessionStorage.length]")).toEqual([0, 1]);
    await close();
    await server.stop();
  });
});

let strict: Double | undefined;
afterAll(() => strict?.close());

/** A server that no table knows, with Groq's refusals, behind one that has an admin key. */
async function strictUpstream(): Promise<string[]> {
  strict = await startChat({ ...groq, owner: "me" }, "Hi");
  return [strict.url, "--admin-key", "admin-0123456789abcdef"];
}

describePage("Profiles of upstreams", strictUpstream, (at) => {
  test.each(looksOf(3))("are shown with the origin of each entry: %s", async (_, options) => {
    const { page, wrong, close } = await at.open("check", options);
    await page.getByText("What the upstreams of this server accept").click();
    await page.locator(".banner", { hasText: "The admin API needs an admin key" }).waitFor();
    await page.getByLabel("Admin key of this page's server").fill("admin-0123456789abcdef");
    const named = { messages: [{ role: "user", content: "Hi", name: "ada" }] };
    await (await fetch(`${at.server.url}/v1/chat/completions`, chat("", { model: "m", ...named }))).text();
    await page.getByRole("button", { name: "Load again" }).click();
    const entries = page.getByRole("region", { name: `Entries of m at ${strict?.url}` });
    const learned = entries.locator("tr", { has: page.getByText("dropInMessages", { exact: true }) });
    await learned.waitFor();
    await expect.poll(() => learned.locator("td").allTextContents()).toEqual(['["name"]', "learned"]);
    await expect.poll(() => page.getByLabel("Admin key of this page's server").count()).toBe(0);
    await expectAccessible(page, "a profile");
    expect(wrong).toEqual([]);
    await close();
  });
});
