import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { small, taskEvents } from "../models/support.ts";
import { describePage, looksOf, talker } from "../support/describe-page.ts";
import { startHub } from "../support/hub-double.ts";
import type { HubDouble } from "../support/hub-double.ts";
import { expectAccessible } from "../support/open-page.ts";
import { startTruewire } from "../support/serve.ts";
import { chat } from "../support/transports.ts";
import { startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-models-page-"));
let hub: HubDouble;
const upstreams: ScriptedServer[] = [];
/** Whether the first URL of the upstream fails. */
let fails = true;
afterAll(async () => {
  hub?.close();
  delete process.env["HF_ENDPOINT"];
  await Promise.all(upstreams.map((upstream) => upstream.close()));
  rmSync(folder, { recursive: true, force: true });
});

const hello = JSON.stringify({ choices: [{ message: { content: "Hi" }, finish_reason: "stop" }] });

async function everyKind(): Promise<string[]> {
  hub = await startHub(folder);
  process.env["HF_ENDPOINT"] = hub.endpoint;
  for (const name of ["a", "b"]) writeProgrammedModel(join(folder, `${name}.gguf`));
  for (const isFirst of [true, false])
    upstreams.push(
      await startScripted((response) => {
        if (isFirst && fails) response.writeHead(500).end("{}");
        else response.writeHead(200, { "content-type": "application/json" }).end(hello);
      }),
    );
  const urls = JSON.stringify(upstreams.map(({ url }) => url));
  const lines = [
    "port: 0",
    "memory: 400MiB",
    "models:",
    `  - { kind: local, path: a.gguf, load: lazy, aliases: [first], fallbacks: [up], ${small} }`,
    `  - { kind: local, path: b.gguf, load: lazy, ${small} }`,
    `  - { kind: local, path: "hf:somebody/tiny:Q4_K_M", name: tiny, load: lazy, modelsFolder: "${folder}/models", ${small} }`,
    `  - { kind: upstream, name: up, url: ${urls}, models: [m] }`,
    `  - { kind: program, program: ${JSON.stringify(resolve(talker))} }`,
  ];
  writeFileSync(join(folder, "truewire.yaml"), `${lines.join("\n")}\n`);
  return ["--config", join(folder, "truewire.yaml")];
}

function row(page: Page, name: string): Locator {
  return page.getByRole("listitem", { name, exact: true });
}

const action = (page: Page, name: string, title: string): Locator =>
  row(page, name).getByRole("button", { name: title, exact: true });

const state = (page: Page, name: string): Locator => row(page, name).locator(".chip").first();

describePage("Models", everyKind, (at) => {
  const post = (path: string, body: object, signal?: AbortSignal): Promise<Response> =>
    fetch(`${at.server.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      ...(signal && { signal }),
    });
  /** An answer without end, when it has begun. */
  const endless = async (model: string): Promise<AbortController> => {
    const leaving = new AbortController();
    const asked = chat("#endless", { model, stream: true });
    const response = await fetch(`${at.server.url}/v1/chat/completions`, { ...asked, signal: leaving.signal });
    await response.body?.getReader().read();
    return leaving;
  };

  test("every kind of model, and what a slot does while a request runs, live", async () => {
    const { page, wrong, close } = await at.open("models");
    await expect
      .poll(() => page.locator(".model-line h2 .note").allTextContents())
      .toEqual(["Local model", "Local model", "Local model", "Server", "Program"]);
    await page.getByText("Memory: 0 KiB of 400 MiB (estimated) · 0 of 3 local models loaded").waitFor();
    await expect.poll(() => state(page, "a").textContent()).toBe("not loaded");
    await action(page, "a", "a").click();
    await row(page, "a").getByText("first", { exact: true }).waitFor();
    await row(page, "a").getByText("up", { exact: true }).waitFor();
    // Another client's request loads the model.
    const leaving = await endless("a");
    await expect.poll(() => state(page, "a").textContent()).toBe("loaded");
    await page.getByText("1 of 3 local models loaded").waitFor();
    const slot = row(page, "a").getByText(/^Slot \d: [\d,]+ tokens generated after a prompt of [\d,]+/);
    await slot.waitFor();
    const generated = async (): Promise<number> =>
      Number(/: ([\d,]+)/.exec((await slot.textContent()) ?? "")?.[1]?.replaceAll(",", ""));
    const before = await generated();
    await expect.poll(generated).toBeGreaterThan(before);
    await row(page, "a").getByText("1 of 2 slots").waitFor();
    await page
      .getByText(/ tokens\/s$/)
      .first()
      .waitFor();
    leaving.abort();
    await row(page, "a").getByText("0 of 2 slots").waitFor();
    await row(page, "a").getByText("Slot 1: idle").waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  // Hidden tabs kept their streams open: the server sampled all models four times a second for a page that no one saw.
  test("a tab that is hidden for a while closes its stream, and is up to date as soon as it is visible again", async () => {
    for (const [view, path] of [
      ["models", "/admin/models/live"],
      ["inspect", "/admin/requests/live"],
    ] as const) {
      // Less than a minute passes in each tab: a stream of models that is silent for a minute is taken for lost, and no clock but the tab's runs.
      const isStream = (request: { url(): string }): boolean => request.url().endsWith(path);
      const become = (page: Page, visibility: "hidden" | "visible"): Promise<unknown> =>
        page.evaluate(`
          Object.defineProperty(document, "visibilityState", { configurable: true, get: () => "${visibility}" });
          document.dispatchEvent(new Event("visibilitychange"));
        `);
      // A short look at another tab.
      const brief = await at.open(view);
      await brief.page.clock.install();
      let ended = 0;
      brief.page.on("requestfailed", (request) => (ended += isStream(request) ? 1 : 0));
      await become(brief.page, "hidden");
      await brief.page.clock.runFor(20_000);
      await become(brief.page, "visible");
      await brief.page.clock.runFor(20_000);
      expect(ended).toBe(0);
      await brief.close();

      const { page, wrong, close } = await at.open(view);
      await page.clock.install();
      await become(page, "hidden");
      const closed = page.waitForEvent("requestfailed", isStream);
      await page.clock.runFor(31_000);
      await closed;
      const opened = page.waitForRequest(isStream);
      await become(page, "visible");
      await opened;
      if (view === "models") await state(page, "a").waitFor();
      else await page.locator(".request-row").first().waitFor();
      expect([...brief.wrong, ...wrong]).toEqual([]);
      await close();
    }
  });

  test("loading, keeping, and unloading a busy model, which says what it waits for", async () => {
    const { page, wrong, close } = await at.open("models");
    await state(page, "b").waitFor();
    await action(page, "b", "Load").click();
    await page.locator("[role=status]", { hasText: "b is loaded." }).waitFor({ state: "attached" });
    await expect.poll(() => state(page, "b").textContent()).toBe("loaded");
    await action(page, "b", "Keep").click();
    await row(page, "b").locator(".chip", { hasText: "kept" }).waitFor();
    await expect.poll(() => action(page, "b", "Keep").getAttribute("aria-pressed")).toBe("true");
    await action(page, "b", "Keep").click();
    await row(page, "b").locator(".chip", { hasText: "kept" }).waitFor({ state: "detached" });

    const leaving = await endless("b");
    await row(page, "b").getByText("1 of 2 slots").waitFor();
    await action(page, "b", "Unload").click();
    const dialog = page.getByRole("dialog", { name: "Unload b?" });
    await dialog.getByText(/^It is answering 1 request\. No answer is cut/).waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("Unload");
    await action(page, "b", "Unload").click();
    await dialog.getByRole("button", { name: "Unload" }).click();
    await row(page, "b").getByText("Waiting for 1 request to end…").waitFor();
    await expect.poll(() => state(page, "b").textContent()).toBe("unloading after its answers");
    // A change of mind: nothing has been unloaded.
    await action(page, "b", "Cancel").click();
    await expect.poll(() => state(page, "b").textContent()).toBe("loaded");
    await action(page, "b", "Unload").click();
    await dialog.getByRole("button", { name: "Unload" }).click();
    await row(page, "b").getByText("Waiting for 1 request to end…").waitFor();
    leaving.abort();
    await expect.poll(() => state(page, "b").textContent()).toBe("not loaded");
    // The focus stays at the button.
    await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("Load");
    expect(wrong).toEqual([]);
    await close();
  });

  test("a download: progress, rate and remaining time, cancelled, gone on with; refusals in the server's words", async () => {
    const { page, wrong, close } = await at.open("models");
    hub.manner = "slow";
    await action(page, "tiny", "Download").click();
    await row(page, "tiny")
      .getByText(/^Downloading: \d+ MiB of 26 MiB · .+\/s · .+ left$/)
      .waitFor();
    await action(page, "tiny", "Cancel").click();
    await action(page, "tiny", "Download").waitFor();
    await row(page, "tiny").getByRole("progressbar").waitFor({ state: "detached" });
    // The download of another client is seen, too.
    const elsewhere = new AbortController();
    const pulling = post("/admin/models/pull", { model: "tiny" }, elsewhere.signal).then((response) => response.text());
    await row(page, "tiny")
      .getByText(/^Downloading: /)
      .waitFor();
    elsewhere.abort();
    await expect(pulling).rejects.toThrow();
    await row(page, "tiny")
      .getByText(/^Downloading: /)
      .waitFor({ state: "detached" });
    hub.manner = "whole";
    const field = page.getByLabel("Download a model from Hugging Face");
    await field.fill("https://huggingface.co/nobody/nothing");
    await page.keyboard.press("Enter");
    const downloads = page.getByRole("region", { name: "Downloads" });
    await downloads.getByText(/^hf:nobody\/nothing: .*could not be downloaded/).waitFor();
    // By its repository: the row of the model shows it.
    await field.fill("somebody/tiny:Q4_K_M");
    await page.keyboard.press("Enter");
    await downloads.getByText("tiny is downloaded").waitFor();
    await expect.poll(() => downloads.locator("code").textContent()).toContain(join(folder, "models"));
    await downloads.getByRole("button", { name: "Dismiss" }).last().click();
    await downloads.getByText("tiny is downloaded").waitFor({ state: "detached" });
    expect(wrong).toEqual([]);
    await close();
  });

  test("a URL of an upstream that fails is shown as ejected, with why, until it answers again", async () => {
    fails = true;
    const { page, wrong, close } = await at.open("models");
    await action(page, "up", "up").click();
    await expect
      .poll(() => row(page, "up").locator(".chip").allTextContents())
      .toEqual(["ready", "in service", "in service"]);
    await expect
      .poll(async () => {
        await (await post("/v1/chat/completions", { model: "m", messages: [{ role: "user", content: "Hi" }] })).text();
        return state(page, "up").textContent();
      })
      .toBe("1 of 2 URLs ejected");
    const failing = row(page, "up").locator(".slots li").first();
    await expect
      .poll(() => failing.textContent())
      .toMatch(/ejected0 open · 3 retries · 1 ejectionIt answered with status 500\.$/);
    fails = false;
    await expect.poll(() => state(page, "up").textContent()).toBe("ready");
    await expect.poll(() => failing.locator(".refusal").count()).toBe(0);
    await row(page, "up").getByText("What its servers accept").click();
    await row(page, "up").getByText("It accepts everything").or(row(page, "up").locator(".rows")).first().waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  test.each(looksOf(9))("axe finds nothing, and it fits: %s", async (_, options) => {
    const { page, wrong, close } = await at.open("models", options);
    await state(page, "a").waitFor();
    await expectAccessible(page, "the list");
    await page.keyboard.press("Tab");
    await action(page, "a", "a").focus();
    await page.keyboard.press("Enter");
    await action(page, "up", "up").click();
    await page.getByText("How to add a model").click();
    const leaving = await endless("a");
    await row(page, "a")
      .getByText(/^Slot \d: .*generated/)
      .first()
      .waitFor();
    await post("/admin/models/keep", { model: "a", keep: true });
    await page.getByLabel("Download a model from Hugging Face").fill("hf:nobody/nothing");
    await page.keyboard.press("Enter");
    await page.locator(".banner", { hasText: "could not be downloaded" }).waitFor();
    await expectAccessible(page, "everything open");
    await action(page, "a", "Unload").click();
    await page.getByRole("dialog").waitFor();
    await expectAccessible(page, "the question");
    leaving.abort();
    await page.keyboard.press("Escape");
    await post("/admin/models/keep", { model: "a", keep: false });
    await taskEvents(await post("/admin/models/unload", { model: "a" }));
    expect(wrong).toEqual([]);
    await close();
  });

  test("a connection that is lost is said to be, and taken up again; the admin key is asked for", async () => {
    const first = await startTruewire([talker]);
    const { port } = new URL(first.url);
    const { page, close } = await at.open("models");
    await page.goto(`${first.url}/#models`);
    await state(page, "talker").waitFor();
    await first.stop();
    await page.getByText("the page keeps trying to connect to the server again").waitFor();
    await expect.poll(() => state(page, "talker").textContent()).toBe("ready");
    const key = "admin-0123456789abcdef";
    const second = await startTruewire([talker, "--port", port, "--admin-key", key]);
    await page.getByRole("heading", { name: "The models are for the operator of the server" }).waitFor();
    // The field has the focus.
    await expect.poll(() => page.evaluate("document.activeElement.type")).toBe("password");
    await page.keyboard.type("wrong-0123456789");
    await page.keyboard.press("Enter");
    await page.getByText("This is not an admin key of this server").waitFor();
    await page.getByLabel("Admin key of this page's server").fill(key);
    await page.keyboard.press("Enter");
    await state(page, "talker").waitFor();
    await expect.poll(() => page.evaluate("[localStorage.length, sessionStorage.length]")).toEqual([0, 1]);
    await second.stop();
    await page.getByText("the page keeps trying to connect to the server again").waitFor();
    const third = await startTruewire([talker, "--port", port, "--admin-key", key]);
    await page.locator("[role=status]", { hasText: "Connected to the server again." }).waitFor({ state: "attached" });
    await expect.poll(() => page.locator(".models .banner.wrong").count()).toBe(0);
    await third.stop();
    // No right to it: said in the server's words.
    const closed = await startTruewire([talker, "--api-key", "client-0123456789"]);
    await page.goto(`${closed.url}/#models`);
    await page.getByText(/^The admin API is closed/).waitFor();
    await closed.stop();
    await close();
  });

  test("nothing is asked for while another view is shown", async () => {
    const { page, close } = await at.open("play");
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.getByRole("link", { name: "Models" }).click();
    await state(page, "a").waitFor();
    const ended = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/admin/models/live"));
    await page.getByRole("link", { name: "Check" }).click();
    await ended;
    expect(asked.filter((url) => url.includes("/admin/"))).toHaveLength(1);
    await close();
  });
});
