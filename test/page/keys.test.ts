import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, expect, test } from "vitest";
import { keyOf, withKey } from "../keys/support.ts";
import { describePage, talker } from "../support/describe-page.ts";
import { expectAccessible } from "../support/open-page.ts";
import { chat } from "../support/transports.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-keys-page-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const adminKey = "admin-of-the-page-0123456789";
const carol = keyOf("carol", { tokensPerDay: 1000, budget: { month: 0.002 } });

async function managed(): Promise<string[]> {
  const file = join(folder, "truewire.json");
  const models = [{ kind: "program", program: resolve(talker), name: "talker" }];
  const prices = { talker: { input: 10, output: 10 } };
  writeFileSync(file, JSON.stringify({ port: 0, adminKey, managedKeys: true, keys: [carol.entry], prices, models }));
  return ["--config", file];
}

describePage("the keys of a server", managed, (at) => {
  test("the admin sees who used what, creates a key, which is shown once, and revokes it", async () => {
    const { server } = at;
    const used = withKey(carol.key, chat("Hello", { model: "talker", max_tokens: 10 }));
    expect((await fetch(`${server.url}/v1/chat/completions`, used)).status).toBe(200);
    const { page, close } = await at.open("keys");
    // The dialog asks for a client's key: the page's own requests need none.
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByLabel("Admin key of this page's server").fill("not the key");
    await page.getByRole("button", { name: "Show the keys" }).click();
    await page.getByText("This is not an admin key of this server").waitFor();
    await page.getByLabel("Admin key of this page's server").fill(adminKey);
    await page.getByRole("button", { name: "Show the keys" }).click();
    const ofCarol = page.getByRole("row", { name: /carol/ });
    await ofCarol.getByText(/^[1-9]\d* of 1,000 tokens today$/).waitFor();
    await ofCarol.getByText(/^\$0\.00\d+ of \$0\.002 this month$/).waitFor();
    expect(await ofCarol.getByRole("button").count()).toBe(0);
    await expectAccessible(page, "the keys");

    await page.getByLabel("Name", { exact: true }).fill("dora");
    await page.getByLabel("Owner").fill("search-team");
    await page.getByLabel("Budget for a month in US dollars (none)").fill("5");
    await page.getByRole("button", { name: "Create" }).click();
    const shown = page.getByRole("group", { name: "The new key" });
    const key = (await shown.locator("code").textContent()) ?? "";
    expect(key).toMatch(/^tw-[\w-]{43}$/);
    const asks = async (): Promise<number> =>
      (
        await fetch(
          `${server.url}/v1/chat/completions`,
          withKey(key, chat("Hello", { model: "talker", max_tokens: 10 })),
        )
      ).status;
    expect(await asks()).toBe(200);
    await page.getByRole("button", { name: "Hide it" }).click();
    expect(await page.content()).not.toContain(key);

    page.once("dialog", (dialog) => void dialog.accept());
    const ofDora = page.getByRole("row", { name: /dora/ });
    await ofDora.getByText("search-team").waitFor();
    await ofDora.getByRole("button").click();
    await ofDora.waitFor({ state: "detached" });
    expect(await asks()).toBe(401);
    await close();
  });
});
