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
    await page.getByLabel("Requests that confirm a finding").fill("2");
    await page.getByLabel("Seeds of the sessions").fill("7, 8,");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    const losses = page.getByRole("region", { name: `What ${gateway.url} loses` });
    await losses.waitFor();

    const sessions = (await losses.locator("tbody code").allTextContents()).filter((id) => id.startsWith("session-"));
    expect(new Set(sessions.map((id) => id.split("-")[1]))).toEqual(new Set(["7", "8"]));
    const row = losses.locator("tbody tr", { hasText: "effort of reasoning" }).first();
    await expect.poll(() => row.textContent()).toContain("✗ error");
    const plain = losses.locator("tbody tr", { hasText: "plain request" }).first();
    await expect.poll(() => plain.textContent()).toContain("✓ arrives");
    const finding = losses.locator("details", { hasText: "request lost reasoning.effort" }).first();
    await finding.locator("summary").click();
    await expect.poll(() => finding.textContent()).toContain("Seen again in 2 of 2 requests.");
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

  test("a port in use, a wrong address and wrong seeds are said", async () => {
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
    await page.getByLabel("Base URL of the gateway").fill(gateway.url);
    await page.getByLabel("Seeds of the sessions").fill("3 three");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText("'seeds': expected 1 to 20 different whole numbers").waitFor();
    await close();
    gateway.close();
  });

  test.each([{ confirm: 21 }, { confirm: 0.5 }, { seeds: [] }, { seeds: [3, 3] }, { seeds: [-1] }, { seeds: "3" }])(
    "POST /admin/between refuses %o",
    async (wrong) => {
      const response = await fetch(`${at.server.url}/admin/between`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ url: "http://127.0.0.1:9", port: 9001, ...wrong }),
      });
      expect(response.status).toBe(400);
      expect(await response.text()).toContain(`'${Object.keys(wrong)[0]}': expected`);
    },
  );
});
