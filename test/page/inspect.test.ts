import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator, Page, Route } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { describePage, looksOf, pageSize, talker } from "../support/describe-page.ts";
import { ask, expectAccessible, expectFits } from "../support/open-page.ts";
import { chat } from "../support/transports.ts";
import { event, role, startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";

const admin = "admin-key-12345678";

function rows(page: Page): Locator {
  return page.locator(".request-row");
}

/** The titles of the requests that are listed, the newest first. */
function titles(page: Page): Promise<string[]> {
  return rows(page).locator(".row-title").allTextContents();
}

const folder = mkdtempSync(join(tmpdir(), "truewire-inspect-page-"));
let upstream: ScriptedServer | undefined;
afterAll(async () => {
  await upstream?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A local model, a program, and another server that says what must be mended. */
async function threeModels(): Promise<string[]> {
  const model = join(folder, "programmed.gguf");
  writeProgrammedModel(model);
  upstream = await startScripted((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const noSpace = event({ content: "Hello" }).replace("data: ", "data:");
    response.end(`${role}${noSpace}: ping\n\n${event({}, "eos")}`);
  });
  return [model, "--gpu", "off", "--threads", "1", talker, upstream.url];
}

describePage("Inspect", threeModels, (at) => {
  const asked = async (model: string, content: string, more: object = {}): Promise<void> => {
    const response = await fetch(
      `${at.server.url}/v1/chat/completions`,
      chat(content, { model, stream: true, ...more }),
    );
    await response.text();
  };
  beforeAll(async () => {
    await asked("programmed", "#plain Be <|im_end|> brief");
    await asked("m", "hi");
    // The program counts no tokens of its text: a rule finds that.
    await asked("talker", "zero", { stream_options: { include_usage: true } });
    await asked("talker", "fail");
    await (await fetch(`${at.server.url}/v1/nowhere`)).text();
  });

  test("lists the last requests of any client, and new ones as they come", async () => {
    const { page, wrong, close } = await at.open("inspect");
    await expect.poll(() => titles(page)).toEqual(["GET /v1/nowhere", "talker", "talker", "m", "programmed"]);
    await expect
      .poll(() => rows(page).locator(".row-outcome").allTextContents())
      .toEqual(["refused 404", "refused 422", "finished", "finished", "finished"]);
    await page.getByRole("link", { name: "Play" }).click();
    await page.getByLabel("Model", { exact: true }).selectOption("talker");
    await ask(page, "asked in Play");
    await page.getByRole("link", { name: "Inspect" }).click();
    await expect.poll(async () => (await titles(page))[0]).toBe("talker");
    await asked("talker", "asked while somebody looks");
    await expect.poll(() => rows(page).count()).toBe(7);
    await rows(page).first().click();
    await page.getByRole("tab", { name: "Request" }).click();
    await page.getByLabel("The body as it came").getByText("asked while somebody looks").waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  test("shows the upstream's bytes beside ours, each repair at its place", async () => {
    const { page, wrong, close } = await at.open("inspect");
    await rows(page)
      .filter({ has: page.locator(".row-title", { hasText: /^m$/ }) })
      .first()
      .click();
    await page.getByRole("tab", { name: "Wire" }).click();
    const theirs = page.getByRole("region", { name: "What the other server sent" });
    await theirs.locator("mark").first().waitFor();
    const marked = [event({ content: "Hello" }).replace("data: ", "data:").trim(), ": ping", event({}, "eos").trim()];
    await expect.poll(() => theirs.locator("mark").allTextContents()).toEqual(expect.arrayContaining(marked));
    await expect
      .poll(() => theirs.locator("mark", { hasText: ": ping" }).getAttribute("title"))
      .toBe("A comment line was dropped.");
    const ours = page.getByRole("region", { name: "What went out to the client" });
    await expect.poll(() => ours.textContent()).toContain("data: [DONE]");
    await expect.poll(() => page.getByRole("img", { name: /^To the client: \d+ chunks?, from/ }).count()).toBe(1);
    await page.getByRole("button", { name: "A comment line was dropped." }).click();
    await expect
      .poll(() => page.evaluate("document.activeElement.getAttribute('aria-label')"))
      .toBe("What the other server sent");
    await page.getByText("Request sent upstream").click();
    await page.getByLabel("The body that was sent").getByText('"stream": true').waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  test("shows the prompt as the model read it, and what it wrote", async () => {
    const { page, wrong, close } = await at.open("inspect");
    await rows(page).filter({ hasText: "programmed" }).last().click();
    await page.getByRole("tab", { name: "Prompt" }).click();
    const prompt = page.getByRole("region", { name: "The prompt" });
    await prompt.locator("mark").first().waitFor();
    await expect
      .poll(async () => (await prompt.locator("mark.control").allTextContents()).slice(0, 2))
      .toEqual(["<|im_start|>", "<|im_end|>"]);
    // What only spells a control token is the user's text.
    await expect
      .poll(async () => (await prompt.locator("mark.quote").allTextContents()).join(""))
      .toBe("#plain Be <|im_end|> brief");
    await page
      .getByRole("region", { name: "What the model wrote" })
      .getByText("The quick brown fox jumps over the lazy dog.<|im_end|>")
      .waitFor();
    // Asked again, all but the last token is in the cache.
    await asked("programmed", "#plain Be <|im_end|> brief");
    await expect.poll(() => rows(page).filter({ hasText: "programmed" }).count()).toBe(2);
    await rows(page).filter({ hasText: "programmed" }).first().click();
    await page.getByRole("region", { name: "The prompt, from the cache" }).waitFor();
    await page.getByText("Processed again: 1 token").waitFor();
    // Where an earlier message has changed, the place and the cause are shown.
    const day = (date: string): object => {
      const system = `Today is ${date}. You help people who know little of foxes, and say what there is to say of them.`;
      return {
        messages: [
          { role: "system", content: system },
          { role: "user", content: "#plain" },
        ],
      };
    };
    await asked("programmed", "", day("2026-01-01"));
    await asked("programmed", "", day("2026-01-02"));
    await expect.poll(() => rows(page).filter({ hasText: "programmed" }).count()).toBe(4);
    const missed = rows(page).filter({ hasText: "programmed" }).first();
    await missed.getByText("cache missed").waitFor();
    await expect
      .poll(() => missed.locator(".row-numbers").textContent())
      .toMatch(/^\d+ tokens in, \d+ % cached · A date or time changed in messages\[0\]\./);
    await missed.click();
    const miss = page.getByRole("region", { name: "Why the cache was missed" });
    await miss.getByText("A date or time changed in messages[0].").waitFor();
    await expect
      .poll(() => miss.locator("mark").allTextContents())
      .toEqual([expect.stringMatching(/^1/), expect.stringMatching(/^2/)]);
    await page.getByRole("tab", { name: "Events" }).click();
    await page.getByRole("region", { name: "Events" }).getByText("text-delta").first().waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  // Ten requests of an agent were ten identical rows.
  test("a row says what happened, and the turns of a conversation stand together", async () => {
    const { page, wrong, close } = await at.open("inspect");
    const question = { role: "user", content: "call look" };
    const call = { id: "call_1", type: "function", function: { name: "look", arguments: '{"n":7}' } };
    const result = { role: "tool", tool_call_id: "call_1", content: "seven foxes" };
    const called = [question, { role: "assistant", content: null, tool_calls: [call] }, result];
    const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];
    await asked("talker", "", { messages: [question], tools });
    await asked("talker", "a request of another client");
    await asked("talker", "", { messages: called, tools });
    const snippets = async (count: number): Promise<string[]> =>
      (await rows(page).locator(".row-snippet").allTextContents()).slice(0, count).map((text) => text.trim());
    await expect.poll(() => snippets(2)).toEqual(["▸call look", "a request of another client"]);
    await rows(page).first().getByText("2 turns").waitFor();
    await rows(page).first().click();
    await expect
      .poll(() => snippets(4))
      .toEqual(["▾call look", "turn 2tool result seven foxes", "turn 1 call look", "a request of another client"]);
    await rows(page).nth(2).getByText("calls look").waitFor();
    await expect.poll(() => page.locator(".request-row.continued").count()).toBe(2);
    await asked("talker", "long 60 500");
    await rows(page)
      .first()
      .getByText(/^3 tokens in · 60 out · \d+ tokens\/s · first token after \d/)
      .waitFor();
    await rows(page).first().click();
    await page.locator(".inspected .chip", { hasText: /^finished in \d/ }).waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  // The program gives no usage, and "usage/missing" accused the answer that Truewire wrote.
  test("no finding is about usage that the source did not give", async () => {
    const { page, wrong, close } = await at.open("inspect");
    await asked("talker", "no usage here", { stream_options: { include_usage: true } });
    await rows(page).filter({ hasText: "no usage here" }).first().click();
    await page.getByRole("tab", { name: "Findings" }).click();
    await page.locator(".judged .chip", { hasText: "0 errors" }).waitFor();
    await expect.poll(() => page.locator(".judged .findings li").count()).toBe(0);
    await expect.poll(() => rows(page).filter({ hasText: "no usage here" }).locator(".chip.error").count()).toBe(0);
    expect(wrong).toEqual([]);
    await close();
  });

  test("the rules judge answers in the browser, and requests are filtered", async () => {
    const { page, wrong, close } = await at.open("inspect");
    await rows(page).first().waitFor();
    await page.getByLabel("How they ended").selectOption("refused");
    await expect.poll(() => titles(page)).toEqual(["GET /v1/nowhere", "talker"]);
    await page.getByLabel("Model of the requests").selectOption("talker");
    await expect.poll(() => titles(page)).toEqual(["talker"]);
    await page.getByLabel("Model of the requests").selectOption("");
    await page.getByLabel("How they ended").selectOption("");
    await page.getByLabel("What was found").selectOption("repair comment");
    await expect.poll(() => titles(page)).toEqual(["m"]);
    await rows(page).first().click();
    await page.getByRole("tab", { name: "Findings" }).click();
    await page.locator(".judged .chip", { hasText: "0 errors" }).waitFor();
    await page.getByText(/\d+ rules passed/).waitFor();
    await page.getByLabel("What was found").locator("option", { hasText: "usage/zero" }).waitFor({ state: "attached" });
    await page.getByLabel("What was found").selectOption("rule usage/zero");
    await expect.poll(async () => new Set(await titles(page))).toEqual(new Set(["talker"]));
    await rows(page).last().locator(".chip", { hasText: "error" }).waitFor();
    await rows(page).last().click();
    await page.locator(".judged .finding code", { hasText: "usage/zero" }).waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  // A finding that came after its view was left and shown again was given to the request that was judged then.
  test("a finding that comes late is of the request that it was made for", async () => {
    const { page, wrong, close } = await at.open("play");
    // In the order in which their scripts are let through.
    const gone: boolean[] = [];
    page.on("worker", (worker) => {
      const at = gone.push(false) - 1;
      worker.on("close", () => (gone[at] = true));
    });
    const scripts: Route[] = [];
    await page.route("**/page/judging-worker.js", (route) => void scripts.push(route));
    // The rules find something in it.
    await asked("talker", "zero", { stream_options: { include_usage: true } });
    const open = async (): Promise<unknown> => (await fetch(`${at.server.url}/admin/requests?outcome=open`)).json();
    await expect.poll(open).toMatchObject({ requests: [] });
    await page.getByRole("link", { name: "Inspect" }).click();
    await expect.poll(() => scripts.length).toBe(1);
    await page.getByRole("link", { name: "Play" }).click();
    await page.getByRole("link", { name: "Inspect" }).click();
    await expect.poll(() => scripts.length).toBe(2);
    let captured = (): void => {};
    const held = new Promise<void>((resolve) => (captured = resolve));
    await page.route("**/capture", async (route) => {
      await held;
      await route.continue();
    });
    const [next] = await Promise.all([page.waitForRequest("**/capture"), scripts[1]?.continue()]);
    // The worker of the work that was left: gone once its finding was taken.
    await scripts[0]?.continue();
    await expect.poll(() => gone).toEqual([false, true]);
    await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
    await expect.poll(() => rows(page).first().locator(".chip.error").count()).toBe(1);
    const other = page.locator(`#row-${/req_\w+/.exec(next.url())?.[0]}`);
    await expect.poll(() => other.count()).toBe(1);
    await expect.poll(() => other.locator(".chip.error").count()).toBe(0);
    captured();
    expect(wrong).toEqual([]);
    await close();
  });

  test("a request with its answer is one file", async () => {
    const { page, wrong, close } = await at.open("inspect");
    await rows(page)
      .filter({ has: page.locator(".row-title", { hasText: /^m$/ }) })
      .first()
      .click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download with its answer" }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/^req_\w+\.jsonl$/);
    const text = readFileSync(await download.path(), "utf8");
    expect(text).toMatch(/^\{"truewire":1,.*\}\n$/);
    // Check also judges it.
    await page.getByRole("link", { name: "Check" }).click();
    await page
      .locator(".judging input[type=file]")
      .setInputFiles({ name: "capture.jsonl", mimeType: "", buffer: Buffer.from(text) });
    await page.locator(".judged", { hasText: "capture.jsonl" }).getByText("0 errors").waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  test("an answer that goes on is shown as it goes", async () => {
    const { page, wrong, close } = await at.open("inspect");
    const leaving = new AbortController();
    const going = fetch(`${at.server.url}/v1/chat/completions`, {
      ...chat("long 100000 50", { model: "talker", stream: true }),
      signal: leaving.signal,
    }).then((response) => response.text());
    await rows(page).filter({ hasText: "open" }).first().click();
    await page.getByRole("tab", { name: "Wire" }).click();
    const ours = page.getByRole("region", { name: "What went out to the client" });
    await expect.poll(() => ours.textContent()).toContain("w3 ");
    const before = await ours.locator(".frame").count();
    await expect.poll(() => ours.locator(".frame").count()).toBeGreaterThan(before);
    await page.getByText("The request can be downloaded when its answer has ended.").waitFor();
    leaving.abort();
    await going.catch(() => {});
    await page.locator(".inspected .chip", { hasText: "cancelled" }).waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  test("needs no pointer: the arrow keys go through requests and tabs, and the address keeps the place", async () => {
    const { page, close } = await at.open("inspect");
    await rows(page).first().waitFor();
    const list = page.getByRole("tree");
    await list.focus();
    const selected = (place: number): Locator =>
      page.locator(`.request-row[aria-posinset='${place}'][aria-selected=true]`);
    await page.keyboard.press("ArrowDown");
    await selected(1).waitFor();
    await page.keyboard.press("ArrowDown");
    const second = selected(2);
    await second.waitFor();
    const id = await second.getAttribute("id");
    await expect.poll(() => list.getAttribute("aria-activedescendant")).toBe(id);
    await page.getByRole("tab", { name: "Wire" }).click();
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => page.getByRole("tab", { name: "Events" }).getAttribute("aria-selected")).toBe("true");
    await page.keyboard.press("End");
    await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("Findings");
    // The address follows the tab a moment later.
    const place = (): Promise<unknown> => page.evaluate("location.hash");
    await expect.poll(place).toMatch(/^#inspect\/req_.*\/findings$/);
    const chosen = await place();
    await page.reload();
    await page.locator(".inspected").waitFor();
    await expect.poll(() => place()).toBe(chosen);
    await close();
  });

  test.each(looksOf(7))("axe finds nothing: %s", async (_, options) => {
    const { page, wrong, close } = await at.open("inspect", options);
    const narrow = options.viewport.width < 900;
    await rows(page).first().waitFor();
    await expectAccessible(page, "a list");
    // Rows out of sight are not there.
    await page.getByLabel("What was found").selectOption("repair comment");
    await rows(page).first().click();
    await page.getByRole("tab", { name: "Wire" }).click();
    await page.locator(".frames mark").first().waitFor();
    await page.locator(".chosen summary").first().click();
    await expectAccessible(page, "the wire");
    await page.getByRole("tab", { name: "Findings" }).click();
    await page.getByText(/\d+ rules passed/).waitFor();
    await expectAccessible(page, "findings");
    if (narrow) await page.getByRole("button", { name: "Back to the list" }).click();
    await page.getByLabel("What was found").selectOption("");
    await page.getByLabel("Model of the requests").selectOption("programmed");
    await rows(page).filter({ hasText: "programmed" }).first().click();
    // The other texts have no colours, and fit as the prompt does.
    for (const name of narrow ? ["Prompt"] : ["Prompt", "Request", "Events"]) {
      await page.getByRole("tab", { name }).click();
      await page.locator(".tab-panel pre").first().waitFor();
      await expectAccessible(page, name);
    }
    // Nothing sticks out of a narrow screen (WCAG 1.4.10).
    await expectFits(page, "at the end");
    expect(wrong).toEqual([]);
    await close();
  });

  test("each adaptation of a request is shown with its place, next to the body that was sent", async () => {
    const messages = [
      { role: "user", content: "hi" },
      { role: "assistant", content: "Hello." },
      { role: "system", content: "Be brief from here on." },
      { role: "user", content: "bye" },
    ];
    await asked("m", "", { messages });
    const { page, wrong, close } = await at.open("inspect");
    // It continues the first question to this model.
    await rows(page).filter({ hasText: "2 turns" }).filter({ hasText: "hi" }).first().click();
    await rows(page).filter({ hasText: "bye" }).first().click();
    await page.getByRole("tab", { name: "Wire" }).click();
    await page.locator("summary", { has: page.getByText(/asked|sent upstream/i) }).click();
    const adaptations = page.getByRole("list", { name: "Adaptations of the request" });
    await adaptations.getByText("A later system message was sent as a marked text of the user's.").waitFor();
    await adaptations.getByText("system-as-user · messages[2]").waitFor();
    await page.getByLabel("The body that was sent").getByText("Be brief from here on.").waitFor();
    await expectAccessible(page, "adaptations");
    expect(wrong).toEqual([]);
    await close();
  });

  test("many requests, and an answer of many frames, leave the tab alive", async () => {
    for (let round = 0; round < 12 * pageSize; round++)
      await Promise.all(Array.from({ length: 50 }, async () => (await fetch(`${at.server.url}/v1/nowhere`)).text()));
    await asked("talker", `long ${6000 * pageSize}`);
    const { page, wrong, close } = await at.open("inspect");
    const count = page.getByText(/^[\d,]+ requests$/);
    await expect
      .poll(async () => Number((await count.textContent())?.replaceAll(/\D/g, "")))
      .toBeGreaterThan(600 * pageSize);
    // Only rows in sight are there.
    await expect.poll(() => rows(page).count()).toBeLessThan(80);
    const list = page.getByRole("tree");
    await list.focus();
    await page.keyboard.press("End");
    await page.locator(".request-row[aria-selected=true] .row-title", { hasText: "programmed" }).waitFor();
    await page.keyboard.press("Home");
    await page.getByRole("tab", { name: "Wire" }).click();
    const ours = page.getByRole("region", { name: "What went out to the client" });
    await ours.getByText(/were not kept in memory/).waitFor({ state: "attached" });
    // They are painted a part at a time.
    await expect.poll(() => ours.locator(".frame").last().textContent()).toContain("data: [DONE]");
    await expect.poll(() => ours.locator(".frame").count()).toBeGreaterThan(1000);
    await page.getByText("This request cannot be downloaded").waitFor();
    await page.getByRole("tab", { name: "Events" }).click();
    await page
      .getByRole("region", { name: "Events" })
      .getByText(/"kind":"done"/)
      .waitFor({ state: "attached" });
    // Meanwhile the page does what it is told.
    await page.getByLabel("How they ended").selectOption("finished");
    await expect.poll(() => rows(page).count()).toBeLessThan(30);
    expect(wrong).toEqual([]);
    await close();
  });
});

const keys = ["--api-key", "client-key-12345678", "--admin-key", admin];

describePage("Inspect of a server with keys", [talker, ...keys, "--inspect"], (at) => {
  test("asks for the admin key, and keeps it for the tab", async () => {
    const { page, wrong, close } = await at.open("inspect");
    await page.getByRole("button", { name: "Cancel" }).click();
    await expectAccessible(page, "the admin key is asked for");
    await page.getByLabel("Admin key").fill("not-the-admin-key");
    await page.getByRole("button", { name: "Look at the requests" }).click();
    await page.getByText("This is not an admin key of this server").waitFor();
    await page.getByLabel("Admin key").fill(admin);
    await page.getByRole("button", { name: "Look at the requests" }).click();
    await page.getByRole("tree").waitFor();
    await fetch(`${at.server.url}/v1/chat/completions`, chat("hi"));
    await expect.poll(() => rows(page).count()).toBe(1);
    await page.reload();
    await page.getByRole("button", { name: "Cancel" }).click();
    await expect.poll(() => rows(page).count()).toBe(1);
    expect(wrong).toEqual([]);
    await close();
  });
});

describePage("Inspect that is off", [talker, "--no-inspect"], (at) => {
  test("says how it is turned on", async () => {
    const { page, wrong, close } = await at.open("inspect");
    await page.locator(".banner", { hasText: "Requests are not recorded." }).waitFor();
    expect(wrong).toEqual([]);
    await close();
  });
});
