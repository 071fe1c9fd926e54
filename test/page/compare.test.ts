import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { expectAccessible } from "../support/open-page.ts";
import { describePage, looksOf, openPlayForEach, talker } from "../support/describe-page.ts";
import { event, role, startScripted, type ScriptedServer } from "../upstream/scripted-server.ts";
import { waitMs } from "../support/hang.ts";

let upstream: ScriptedServer | undefined;
afterAll(() => upstream?.close());

/** A program, and an upstream whose model `m` fails, breaks or answers as the last message says; it reports cached tokens and timings. */
async function both(): Promise<string[]> {
  upstream = await startScripted((response, { messages }) => {
    const said = messages as { role?: unknown; content?: unknown }[];
    const content = said.at(-1)?.content;
    if (content === "fail") {
      response.writeHead(400, { "content-type": "application/json" });
      response.end('{"error":{"message":"No such thing.","type":"invalid_request_error"}}');
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const usage = {
      prompt_tokens: 40,
      completion_tokens: 2,
      total_tokens: 42,
      prompt_tokens_details: { cached_tokens: 30 },
    };
    response.end(
      `${role}${event({ content: `Question ${said.filter(({ role }) => role === "user").length}` })}${event({}, "stop")}` +
        `data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`,
    );
  });
  return [talker, upstream.url];
}

describePage("Compare", both, (at) => {
  let page: Page;
  /** The bodies of the requests that the page made. */
  let asked: Record<string, unknown>[];
  // The page asks for the list of models once.
  beforeAll(async () => {
    const list = async (): Promise<string> => (await fetch(`${at.server.url}/v1/models`)).text();
    await vi.waitFor(async () => expect(await list()).toContain('"id":"m"'), { timeout: waitMs });
  });
  openPlayForEach(at, (opened) => ({ page, asked } = opened));

  const button = (name: string): ReturnType<Page["getByRole"]> => page.getByRole("button", { name, exact: true });
  const side = (name: "A" | "B"): ReturnType<Page["getByRole"]> =>
    page.getByRole("group", { name: `Answer of ${name}` });
  const composer = (): ReturnType<Page["getByRole"]> => page.getByRole("textbox", { name: "Your message" });

  async function compare(): Promise<void> {
    await button("Compare").click();
    await page.getByLabel("Model A").waitFor();
  }

  async function ask(text: string): Promise<void> {
    await composer().fill(text);
    await page.keyboard.press("Enter");
  }

  /** Waits until so many rounds have numbers, which they have once both answers are complete. */
  async function complete(rounds: number): Promise<void> {
    await expect.poll(() => page.locator(".numbers").count()).toBe(rounds);
  }

  test("the task: compare two models", async () => {
    let clicks = 0;
    await button("Compare").click();
    clicks++;
    await expect.poll(() => page.getByLabel("Model A").inputValue()).toBe("talker");
    await expect.poll(() => page.getByLabel("Model B").inputValue()).toBe("m");
    // The message box has the focus.
    await expect.poll(() => page.evaluate("document.activeElement.ariaLabel")).toBe("Your message");
    await page.keyboard.type("hello");
    await page.keyboard.press("Enter");
    await complete(1);
    await expect.poll(() => side("A").locator(".said").textContent()).toBe("You said: hello");
    await expect.poll(() => side("B").locator(".said").textContent()).toBe("Question 1");
    console.log(`task "compare two models": ${clicks} click, then the question and Enter`);
    expect(clicks).toBe(1);
    expect(asked.map(({ model, messages }) => ({ model, messages }))).toEqual(
      ["talker", "m"].map((model) => ({ model, messages: [{ role: "user", content: "hello" }] })),
    );
  });

  test("follow-up questions continue both conversations, and the numbers of both are below the answers", async () => {
    await compare();
    await ask("long 30");
    await complete(1);
    await ask("hello");
    await complete(2);
    // The scroll event of the answers came after the table had appeared, and following ended.
    await expect
      .poll(() =>
        page
          .locator(".compare .scroller")
          .evaluate((box: { scrollHeight: number; scrollTop: number; clientHeight: number }) =>
            Math.round(box.scrollHeight - box.scrollTop - box.clientHeight),
          ),
      )
      .toBeLessThanOrEqual(1);
    await expect.poll(() => side("B").last().locator(".said").textContent()).toBe("Question 2");
    expect(asked.slice(2).map(({ messages }) => (messages as object[]).length)).toEqual([3, 3]);
    const first = page.locator(".numbers").first();
    const row = (name: string): Promise<string[]> =>
      first
        .getByRole("row", { name: new RegExp(`^${name}`) })
        .locator("td")
        .allTextContents();
    await expect.poll(() => row("Answer tokens")).toEqual(["30", "2"]);
    await expect.poll(() => row("Prompt tokens")).toEqual(["3", "40"]);
    await expect.poll(() => row("Of them cached")).toEqual(["unknown", "30 (75 %)"]);
    await expect.poll(async () => (await row("First token after")).join(" ")).toMatch(/ m?s.* m?s/);
    await expect
      .poll(() => first.locator(".comparison-verdict").textContent())
      .toMatch(/^(A|B|Both) .* at the same time\.|before [AB]\./);
    await page.locator("[role=status]", { hasText: /(began|finished|generated)/ }).waitFor({ state: "attached" });
  });

  test("each side has its own settings, and what differs is shown", async () => {
    await page.getByLabel("System prompt").fill("Be brief.");
    await compare();
    await page.getByLabel("Model B").selectOption("talker");
    await page.getByText("A and B are the same.").waitFor();
    await page.getByLabel("Settings of B").check();
    const panel = page.locator("#compare-settings");
    await panel.getByLabel("System prompt").fill("Be long.");
    await panel.locator("summary", { hasText: "Parameters" }).click();
    await panel.getByRole("spinbutton", { name: "temperature" }).fill("0.3");
    await expect
      .poll(() => page.getByRole("list", { name: "Settings that differ" }).allTextContents())
      .toEqual(["system prompt: Be brief.temperature: default", "system prompt: Be long.temperature: 0.3"]);
    await ask("options");
    await complete(1);
    expect(asked.map(({ temperature }) => temperature)).toEqual([undefined, 0.3]);
    // Each side's answer is JSON, and shown as code once its Markdown reader has been loaded.
    await expect
      .poll(() => page.locator(".compare-sides .said pre").allTextContents())
      .toEqual([expect.stringContaining('"roles"'), expect.stringContaining('"temperature": 0.3')]);
    expect(asked.map(({ messages }) => (messages as object[])[0])).toEqual([
      { role: "system", content: "Be brief." },
      { role: "system", content: "Be long." },
    ]);
    // Play has its own settings, and the comparison is still there afterwards.
    await button("Compare").click();
    await expect.poll(() => page.getByLabel("System prompt").inputValue()).toBe("Be brief.");
    await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("Compare");
    await page.keyboard.press("Enter");
    await complete(1);
  });

  test("Escape stops what is shown: not the answer of Play, which continues behind a comparison or another view", async () => {
    await composer().fill("long 100000 100");
    await page.keyboard.press("Enter");
    const play = page.locator(".answer").first();
    await play.locator(".said", { hasText: "w3 " }).waitFor();
    await compare();
    await ask("long 100000 100");
    await side("A").locator(".said", { hasText: "w3 " }).waitFor();
    await page.keyboard.press("Escape");
    await complete(1);
    await page.getByRole("link", { name: "Inspect", exact: true }).click();
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Play", exact: true }).click();
    await button("Compare").click();
    await expect.poll(() => play.getAttribute("aria-busy")).toBe("true");
    await page.keyboard.press("Escape");
    await play.locator(".facts", { hasText: /^stopped/ }).waitFor();
  });

  test("a failure of one side leaves the other alone, and so does stopping it", async () => {
    await compare();
    await page.getByLabel("Model A").selectOption("m");
    await page.getByLabel("Model B").selectOption("talker");
    await ask("fail");
    await complete(1);
    await side("A").locator(".banner", { hasText: "No such thing." }).waitFor();
    await side("B").locator(".banner", { hasText: "The talker will not." }).waitFor();
    await button("New comparison").click();
    await page.getByLabel("Model A").selectOption("talker");
    await page.getByLabel("Model B").selectOption("m");
    await ask("long 100000 100");
    await side("A").locator(".said", { hasText: "w3 " }).waitFor();
    await side("B").locator(".said", { hasText: "Question 1" }).waitFor();
    // By the keyboard: the answer above the button grows and moves it, so that a click may miss it.
    await button("Stop A").press("Enter");
    await complete(1);
    await expect.poll(() => page.locator(".comparison-verdict").textContent()).toBe("Not compared: A was stopped.");
    await expect.poll(() => side("B").locator(".banner").count()).toBe(0);
    await expect.poll(() => page.evaluate("document.activeElement.ariaLabel")).toBe("Your message");
  });

  test("Stop and Escape stop both", async () => {
    await compare();
    await page.getByLabel("Model B").selectOption("talker");
    for (const stop of [() => button("Stop").click(), () => page.keyboard.press("Escape")]) {
      await ask("long 100000 100");
      await side("A").locator(".said", { hasText: "w3 " }).waitFor();
      await side("B").locator(".said", { hasText: "w3 " }).waitFor();
      await stop();
      await complete(1);
      await expect
        .poll(() => page.locator(".comparison-verdict").textContent())
        .toBe("Not compared: A was stopped and B was stopped.");
      await button("New comparison").click();
    }
  });

  // One side would have had one question less than the other.
  test("an earlier question is edited for both; the last answer is asked again for one", async () => {
    await compare();
    await ask("first");
    await complete(1);
    await ask("second");
    await complete(2);
    await page.getByRole("button", { name: "Edit" }).first().click();
    await page.getByLabel("Your message, edited").fill("other");
    await page.keyboard.press("Enter");
    await complete(1);
    await expect.poll(() => side("A").locator(".said").textContent()).toBe("You said: other");
    expect(asked.slice(4).map(({ messages }) => messages)).toEqual([
      [{ role: "user", content: "other" }],
      [{ role: "user", content: "other" }],
    ]);
    await side("B").getByRole("button", { name: "Ask again" }).click();
    await expect.poll(() => asked.length).toBe(7);
    expect(asked.at(-1)?.["model"]).toBe("m");
  });

  // A reload ended it: both conversations and the settings of both sides were gone.
  test("a comparison is there after a reload, with its settings, and continues; a new one is not", async () => {
    await compare();
    await page.getByLabel("Settings of B").check();
    await page.locator("#compare-settings").getByLabel("System prompt").fill("Be brief.");
    await ask("first");
    await complete(1);
    await page.reload();
    await complete(1);
    await expect.poll(() => side("A").locator(".said").textContent()).toBe("You said: first");
    await expect.poll(() => side("B").locator(".said").textContent()).toBe("Question 1");
    await ask("second");
    await complete(2);
    expect(asked.slice(-2).map(({ model, messages }) => [model, (messages as object[]).length])).toEqual(
      expect.arrayContaining([
        ["talker", 3],
        ["m", 4],
      ]),
    );
    // Answers that were being received are interrupted, and go on.
    await ask("long 500 50");
    await side("A").last().locator(".said", { hasText: "w3 " }).waitFor();
    await page.reload();
    await side("A").last().getByRole("button", { name: "Continue" }).click();
    await side("A").last().locator(".said", { hasText: "w499" }).waitFor();
    // Play is where it was left, and so is the comparison behind it.
    await page.getByRole("button", { name: "Compare", exact: true }).click();
    await page.reload();
    await page.getByText("Ask a model, and see what it says").waitFor();
    await compare();
    await expect.poll(() => page.locator(".round").count()).toBe(3);
    await button("New comparison").click();
    await page.reload();
    await compare();
    await expect.poll(() => page.locator(".round").count()).toBe(0);
  });

  test("where the settings of one side cannot be sent, neither is asked, and the message names the side", async () => {
    await compare();
    await page.getByLabel("Settings of B").check();
    const panel = page.locator("#compare-settings");
    await panel.locator("summary", { hasText: "Parameters" }).click();
    await panel.getByLabel("Find one of").fill("logit_bias");
    await panel.getByLabel("logit_bias").fill('{"5": ');
    await ask("hello");
    await page.locator(".banner", { hasText: "in the settings of B, logit_bias is no valid JSON" }).waitFor();
    expect(asked).toEqual([]);
  });

  test.each(looksOf(4))("axe finds nothing: %s", async (_, options) => {
    const own = await at.open("play", options);
    await own.page.getByRole("button", { name: "Compare", exact: true }).click();
    const narrow = options.viewport.width < 900;
    await own.page.getByLabel("Model A").waitFor();
    await expectAccessible(own.page, "an empty comparison");
    if (narrow) await own.page.locator(".compare").getByRole("button", { name: "Settings" }).click();
    await own.page.getByLabel("Settings of B").check();
    await own.page.locator("#compare-settings").getByLabel("System prompt").fill("Be brief.");
    await expectAccessible(own.page, "its settings");
    await own.page.getByRole("textbox", { name: "Your message" }).fill("long 30");
    await own.page.keyboard.press("Enter");
    await own.page.locator(".numbers").waitFor();
    await own.page.getByRole("textbox", { name: "Your message" }).fill("fail");
    await own.page.keyboard.press("Enter");
    await expect.poll(() => own.page.locator(".numbers").count()).toBe(2);
    await expectAccessible(own.page, "two rounds");
    const sides = await own.page.locator(".round").first().locator(".compare-sides > div").all();
    const [a, b] = await Promise.all(sides.map((one) => one.boundingBox()));
    if (!a || !b) throw new Error("An answer is not visible.");
    // Below one another on a phone; else side by side, in most of the window.
    if (narrow) expect(b.y).toBeGreaterThan(a.y + a.height - 1);
    else expect([a.y, b.x > a.x + a.width, a.width > 350, b.width > 350]).toEqual([b.y, true, true, true]);
    expect(own.wrong).toEqual([]);
    await own.close();
  });
});
