import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { ask, expectAccessible, lastAnswer, modelsOf, type Tab } from "../support/open-page.ts";
import { describePage, looksOf, talker } from "../support/describe-page.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-settings-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A program, and a local model with a default of each origin. */
async function configured(): Promise<string[]> {
  const model = join(folder, "programmed.gguf");
  writeProgrammedModel(model, { metadata: { "general.sampling.top_p": { type: "f32", value: 0.9 } } });
  const config = join(folder, "truewire.json");
  const local = { kind: "local", name: "programmed", path: model, threads: 1, defaults: { temperature: 0.25 } };
  writeFileSync(
    config,
    JSON.stringify({ port: 0, models: [{ kind: "program", program: join(process.cwd(), talker) }, local] }),
  );
  return ["--config", config];
}

describePage("Settings", configured, (at) => {
  let tab: Tab;
  let page: Page;
  beforeEach(async () => {
    tab = await at.open();
    ({ page } = tab);
  });
  afterEach(async () => {
    await tab.close();
    expect(tab.wrong).toEqual([]);
  });

  const button = (name: string): ReturnType<Page["getByRole"]> => page.getByRole("button", { name, exact: true });
  const preset = (): ReturnType<Page["getByLabel"]> => page.getByLabel("Preset", { exact: true });

  async function save(name: string): Promise<void> {
    await button("Save as preset…").click();
    await page.getByLabel("Preset name").fill(name);
    await page.keyboard.press("Enter");
    await page.locator(".presets .banner", { hasText: `“${name}” is saved.` }).waitFor();
  }

  async function reload(): Promise<void> {
    await page.reload();
    await modelsOf(page).first().waitFor({ state: "attached" });
  }

  // Nobody could see what a blank field means.
  test("a blank field shows the default of the chosen model and its origin; of a model without known defaults, none", async () => {
    await page.locator("#settings summary", { hasText: "Parameters" }).click();
    const temperature = page.getByLabel("temperature", { exact: true });
    await expect.poll(() => temperature.getAttribute("placeholder")).toBe("default");
    await page.getByLabel("Model", { exact: true }).selectOption("programmed");
    await expect.poll(() => temperature.getAttribute("placeholder")).toBe("0.25, set in the configuration");
    await expect.poll(() => page.getByLabel("seed", { exact: true }).getAttribute("placeholder")).toBe("random");
    await expect
      .poll(() => page.getByLabel("max_completion_tokens").getAttribute("placeholder"))
      .toBe("up to the context: 4,096 tokens");
    await temperature.fill("1");
    await page.getByRole("spinbutton", { description: /Without a value: 0.25, set in the configuration\.$/ }).waitFor();
    await page.getByLabel("Find one of").fill("top_");
    await expect.poll(() => page.getByLabel("top_p").getAttribute("placeholder")).toBe("0.9, from the model file");
    await expect.poll(() => page.getByLabel("top_k").getAttribute("placeholder")).toBe("0, Truewire's default");
  });

  test("the common parameters come first, and a search finds all by name and effect", async () => {
    await page.locator("#settings summary", { hasText: "Parameters" }).click();
    const names = page.locator("#settings .field label code:visible");
    await expect
      .poll(() => names.allTextContents())
      .toEqual(["temperature", "max_completion_tokens", "reasoning_effort", "stop", "seed"]);
    const search = page.getByLabel("Find one of");
    await search.fill("temperature");
    await expect.poll(() => names.allTextContents()).toContain("temperature");
    await search.fill("last tokens repeat");
    await expect.poll(() => names.allTextContents()).toEqual(["repeat_last_n"]);
    await search.fill("no such thing");
    await page.getByText("No parameter has “no such thing” in its name or description.").waitFor();
    await search.fill("repeat_last_n");
    await page.getByLabel("repeat_last_n").fill("5");
    await search.fill("");
    // A number in the test was wrong with each new parameter.
    const more = page.locator("#settings .inner");
    await expect.poll(() => more.count()).toBe(1);
    const fields = await more.locator(".field").count();
    expect(fields).toBeGreaterThan(40);
    await expect.poll(() => more.locator("summary").first().textContent()).toBe(`${fields} more1 set`);
    await page.locator("#settings summary .count", { hasText: "1 set" }).first().waitFor();
  });

  test("the settings of the last visit are there after a reload", async () => {
    await page.getByLabel("Model", { exact: true }).selectOption("talker");
    await page.getByLabel("System prompt").fill("Be brief.");
    await page.locator("#settings summary", { hasText: "Parameters" }).click();
    await page.getByLabel("temperature", { exact: true }).fill("0.5");
    await page.locator("#settings summary", { hasText: "Tools" }).click();
    await button("Add a tool").click();
    await page.getByLabel("Name", { exact: true }).fill("count");
    await expect.poll(() => page.evaluate("localStorage['truewire.settings']")).toContain('"count"');
    await reload();
    await ask(page, "options");
    await expect
      .poll(async () => JSON.parse(await lastAnswer(page)))
      .toMatchObject({ temperature: 0.5, roles: ["system", "user"] });
    await page.locator("#settings summary", { hasText: "Tools" }).click();
    await expect.poll(() => page.getByLabel("Name", { exact: true }).inputValue()).toBe("count");
  });

  test("a preset survives a reload, is chosen, updated, renamed, and deleted with undo", async () => {
    await page.getByLabel("System prompt").fill("Be brief.");
    await save("Brief");
    await page.getByLabel("System prompt").fill("You are a poet.");
    await save("Poet");
    await reload();
    await expect.poll(() => preset().inputValue()).toBe("Poet");
    await preset().selectOption("Brief");
    await expect.poll(() => page.getByLabel("System prompt").inputValue()).toBe("Be brief.");

    await page.getByLabel("System prompt").fill("Be very brief.");
    await page.getByText("The settings differ from those of “Brief”.").waitFor();
    await button("Update").click();
    await preset().selectOption("Poet");
    await preset().selectOption("Brief");
    await expect.poll(() => page.getByLabel("System prompt").inputValue()).toBe("Be very brief.");

    await button("Rename…").click();
    await page.getByLabel("Preset name").fill("Poet");
    await page.keyboard.press("Enter");
    await page.getByText("There is a preset “Poet” already. Enter another name.").waitFor();
    await page.getByLabel("Preset name").fill("Terse");
    await page.keyboard.press("Enter");
    await page.locator(".presets p", { hasText: "“Brief” is now “Terse”." }).waitFor();
    await expect
      .poll(() => preset().locator("option").allTextContents())
      .toEqual(["none: all defaults", "Poet", "Terse"]);

    await button("Delete").click();
    await expect.poll(() => preset().locator("option").allTextContents()).toEqual(["none", "Poet"]);
    await button("Undo").click();
    await expect.poll(() => preset().inputValue()).toBe("Terse");
    await reload();
    await expect
      .poll(() => preset().locator("option").allTextContents())
      .toEqual(["none: all defaults", "Poet", "Terse"]);
  });

  // Choosing a preset replaced a long system prompt that was in none, and it was gone.
  test("settings that are in no preset come back with undo", async () => {
    await save("Empty");
    await page.getByLabel("System prompt").fill("A long system prompt");
    await preset().selectOption("none: all defaults");
    await expect.poll(() => page.getByLabel("System prompt").inputValue()).toBe("");
    await button("Undo").click();
    await expect.poll(() => page.getByLabel("System prompt").inputValue()).toBe("A long system prompt");
    await expect.poll(() => preset().inputValue()).toBe("Empty");
  });

  test("presets are exported and imported; an error names the file and the place", async () => {
    await page.getByLabel("System prompt").fill("Be brief.");
    await save("Brief");
    const [download] = await Promise.all([page.waitForEvent("download"), button("Export presets").click()]);
    expect(download.suggestedFilename()).toBe("truewire-presets.json");
    const file = readFileSync(await download.path(), "utf8");
    expect(JSON.parse(file)).toMatchObject({ presets: [{ name: "Brief", system: "Be brief." }] });

    const load = (name: string, text: string): Promise<void> =>
      page
        .getByLabel("Import presets")
        .setInputFiles({ name, mimeType: "application/json", buffer: Buffer.from(text) });
    await button("Delete").click();
    await load("mine.json", file);
    await page.locator(".presets .banner", { hasText: "1 preset is imported." }).waitFor();
    await expect.poll(() => preset().locator("option").allTextContents()).toEqual(["none", "Brief"]);
    await load("mine.json", file);
    await page.locator(".presets p", { hasText: "All presets of the file are here already." }).waitFor();
    await load("bad.json", '{"presets":[{"name":"a","tools":[{"nom":"x"}]}]}');
    await page
      .locator(".presets .banner.wrong", {
        hasText: "bad.json: presets[0].tools[0]: expected only the members name, ",
      })
      .waitFor();
  });

  test("a preset of one tab is in the other tab at once", async () => {
    const other = await page.context().newPage();
    await other.goto(`${at.server.url}/#play`);
    await modelsOf(other).first().waitFor({ state: "attached" });
    await save("Shared");
    await other
      .getByLabel("Preset", { exact: true })
      .locator("option", { hasText: "Shared" })
      .waitFor({ state: "attached" });
  });

  test.each(looksOf(11))("axe finds nothing in presets and the search: %s", async (_, options) => {
    const own = await at.open("play", options);
    if (options.viewport.width < 900) await own.page.getByRole("button", { name: "Settings" }).click();
    await own.page.getByRole("button", { name: "Save as preset…" }).click();
    await own.page.getByLabel("Preset name").fill("Brief");
    await expectAccessible(own.page, "the name of a preset");
    await own.page.keyboard.press("Enter");
    await own.page.getByLabel("System prompt").fill("x");
    await own.page.locator("#settings summary", { hasText: "Parameters" }).click();
    await own.page.getByLabel("Find one of").fill("dry");
    await own.page.getByLabel("dry_base").waitFor();
    await expectAccessible(own.page, "a chosen preset, a search");
    expect(own.wrong).toEqual([]);
    await own.close();
  });
});
