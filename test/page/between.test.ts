import { expect, test } from "vitest";
import { startPassThrough } from "../between/pass-through.ts";
import { describePage, looksOf, talker } from "../support/describe-page.ts";
import { expectAccessible, expectFits } from "../support/open-page.ts";
import { freePort } from "../support/redis-server.ts";

describePage("What a gateway loses", [talker], (at) => {
  test.each(looksOf(1))("a loss is a row of the matrix, and a finding with both sides: %s", async (_, options) => {
    const port = await freePort();
    const gateway = await startPassThrough(() => `http://127.0.0.1:${port}`, {
      request: ({ reasoning_effort: _lost, ...body }) => body,
    });
    const { page, wrong, close } = await at.open("check", options);
    const scripts = () => page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
    const before = await scripts();
    await page.getByText("What does a gateway lose?").click();
    await page.getByLabel("Base URL of the gateway").fill(gateway.url);
    expect((await scripts()).filter((name) => !before.includes(name) && name.endsWith(".js"))).not.toEqual([]);
    await page.getByLabel("Port of the vendor").fill(String(port));
    await page.getByRole("button", { name: "Run", exact: true }).click();
    const losses = page.getByRole("region", { name: `What ${gateway.url} loses` });
    await losses.waitFor();

    const row = losses.locator("tbody tr", { hasText: "effort of reasoning" }).first();
    await expect.poll(() => row.textContent()).toContain("✗ error");
    const plain = losses.locator("tbody tr", { hasText: "plain request" }).first();
    await expect.poll(() => plain.textContent()).toContain("✓ arrives");
    const finding = losses.locator("details", { hasText: "request lost reasoning.effort" }).first();
    await finding.locator("summary").click();
    const side = (title: string) => finding.getByRole("region", { name: `${title}: request lost reasoning.effort` });
    await expect.poll(() => side("At the client").textContent()).toContain('"reasoning_effort":"high"');
    await expect.poll(() => side("At the vendor").textContent()).not.toContain("reasoning_effort");
    await expect.poll(() => side("A request that shows it").textContent()).toMatch(/^curl -sN '/);
    await expectFits(page, "with a finding");
    await expectAccessible(page, "with a finding");
    expect(wrong).toEqual([]);
    await close();
    gateway.close();
  });

  test("a port in use, and a wrong address, are said", async () => {
    const gateway = await startPassThrough(() => "http://127.0.0.1:9");
    const { page, close } = await at.open("check");
    await page.getByText("What does a gateway lose?").click();
    await page.getByLabel("Base URL of the gateway").fill(gateway.url);
    await page.getByLabel("Port of the vendor").fill(new URL(gateway.url).port);
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText(`Port ${new URL(gateway.url).port} is in use: choose another one.`).waitFor();
    await page.getByLabel("Base URL of the gateway").fill("http://user:secret@127.0.0.1");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText("the base URL of an API").waitFor();
    await close();
    gateway.close();
  });
});
