import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { InspectedRequestList } from "../../src/judge/inspect/inspected-request.ts";
import { answered, ask, expectAccessible, lastAnswer, modelsOf } from "../support/open-page.ts";
import { describePage, looksOf, openPlayForEach, pageSize, talker } from "../support/describe-page.ts";
import type { PageUnderTest } from "../support/describe-page.ts";

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
  "base64",
);

/** The titles in the list, the first one first. */
function titles(page: Page): Promise<string[]> {
  return page.locator(".conversation > a").allTextContents();
}

async function begin(page: Page): Promise<void> {
  await page.getByRole("link", { name: "New conversation" }).click();
}

/** Chooses an action of a conversation in the list. */
async function act(page: Page, title: string, action: string): Promise<void> {
  await page
    .getByRole("button", { name: `Actions for ${title}` })
    .first()
    .click();
  await page
    .getByRole("group", { name: `Actions for ${title}` })
    .getByRole("button", { name: action })
    .click();
}

/** Opens a second tab of the same browser. */
async function secondTab(page: Page, url = page.url()): Promise<Page> {
  const second = await page.context().newPage();
  await second.goto(url);
  await modelsOf(second).first().waitFor({ state: "attached" });
  return second;
}

async function importFile(page: Page, name: string, content: unknown): Promise<void> {
  const text = typeof content === "string" ? content : JSON.stringify(content);
  await page.getByLabel("Import…").setInputFiles({ name, mimeType: "application/json", buffer: Buffer.from(text) });
}

/** The texts of the stored answers, and their states. */
function storedAnswers(page: Page): Promise<{ readonly state: string; readonly text: string }[]> {
  return page.evaluate(`new Promise((resolve, reject) => {
    const opening = indexedDB.open("truewire/");
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const reading = opening.result.transaction("turns").objectStore("turns").getAll();
      reading.onsuccess = () => {
        opening.result.close();
        const answers = reading.result.filter(({ kind }) => kind === "answer");
        resolve(answers.map(({ state, choices }) => ({ state, text: choices[0] ? choices[0].text : "" })));
      };
    };
  })`);
}

describePage("Conversations", [talker], (at) => {
  describe("that are kept", () => kept(at));
  describe("that cannot be kept", () => notKept(at));
  describe("for everybody", () => forEverybody(at));
});

function kept(at: PageUnderTest): void {
  let page: Page;
  /** The bodies of the requests of the first tab. */
  let asked: Record<string, unknown>[];
  openPlayForEach(at, (opened) => ({ page, asked } = opened));

  async function reload(): Promise<void> {
    await page.reload();
    await modelsOf(page).first().waitFor({ state: "attached" });
  }

  test("a reload keeps messages, images, reasoning, calls, results, numbers and the settings of each turn", async () => {
    await page.getByLabel("System prompt").fill("Be brief.");
    await page.getByLabel("Attach files").setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: png });
    await page.getByAltText("Attached image 1").waitFor();
    await ask(page, "see");
    await ask(page, "think");
    await page.locator("#settings summary", { hasText: "Tools" }).click();
    await page.getByRole("button", { name: "Add a tool" }).click();
    await page.getByLabel("Name", { exact: true }).fill("count");
    await page.getByLabel("Canned result").fill("seven");
    await page.getByLabel("Your message", { exact: true }).fill("call count");
    await page.keyboard.press("Enter");
    await answered(page, 4);
    const texts = (): Promise<string[]> => page.locator(".turn > :not(header)").allTextContents();
    // Answers are rendered again once Markdown has been loaded.
    await page.getByRole("button", { name: "Raw text" }).last().waitFor();
    const before = await texts();
    const address = page.url();
    expect(address).toMatch(/#play\/[0-9a-f]{24}$/);
    await reload();
    await answered(page, 4);
    expect(page.url()).toBe(address);
    await expect.poll(() => texts()).toEqual(before);
    await expect
      .poll(() => page.locator(".question img").getAttribute("src"))
      .toBe(`data:image/png;base64,${png.toString("base64")}`);
    await page.locator(".reasoning summary").click();
    await expect.poll(() => page.locator(".reasoning .long").textContent()).toBe("Let me see: this is easy.");
    // The settings are those of the turn, not those of the page.
    await page.getByRole("button", { name: "Copy as…" }).first().click();
    const code = (await page.locator("dialog pre").textContent()) ?? "";
    expect(code).toContain('"content": "Be brief."');
    expect(code).toContain('"model": "talker"');
    // The dialog was in the document one frame before it was open: Escape was lost then.
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByLabel("System prompt").fill("");
    await ask(page, "and now?");
    const sent = asked.at(-1)?.["messages"] as readonly { readonly role: string }[];
    const roles = "user assistant user assistant user assistant tool assistant user";
    expect(sent.map(({ role }) => role).join(" ")).toBe(roles);
  });

  test("Edit and Ask again keep the earlier versions, each with what followed it", async () => {
    await ask(page, "first");
    await ask(page, "second");
    await page.getByRole("button", { name: "Edit" }).first().click();
    await page.getByLabel("Your message, edited").fill("other");
    await page.locator(".question").getByRole("button", { name: "Ask again" }).click();
    await answered(page, 1);
    for (const count of [2, 3]) {
      await page.locator(".answer").getByRole("button", { name: "Ask again" }).click();
      await page.locator(".answer .versions", { hasText: `${count} of ${count}` }).waitFor();
      await answered(page, 1);
    }
    const ofQuestion = page.locator(".question .versions").first();
    const ofAnswer = page.locator(".answer .versions").first();
    await expect.poll(() => ofQuestion.locator("span").textContent()).toBe("2 of 2");
    await ofAnswer.getByRole("button", { name: "Previous version" }).click();
    await ofAnswer.getByText("2 of 3").waitFor();
    await ofQuestion.getByRole("button", { name: "Previous version" }).focus();
    await page.keyboard.press("Enter");
    await answered(page, 2);
    await expect.poll(() => lastAnswer(page)).toBe("You said: second");
    // The focus stays where the next version is one key away.
    await expect.poll(() => page.evaluate("document.activeElement.ariaLabel")).toBe("Previous version");
    await page.locator("[role=status]", { hasText: "Version 1 of 2" }).waitFor({ state: "attached" });
    await reload();
    await answered(page, 2);
    await expect.poll(() => page.locator(".question .said").allTextContents()).toEqual(["first", "second"]);
    await ofQuestion.getByRole("button", { name: "Next version" }).click();
    await ofAnswer.getByText("2 of 3").waitFor();
    // A version can be deleted, and restored.
    await ofAnswer.getByRole("button", { name: "Delete this version" }).click();
    await ofAnswer.getByText("1 of 2").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await ofAnswer.getByText("2 of 3").waitFor();
    await ask(page, "on");
    expect(asked.at(-1)?.["messages"]).toEqual([
      { role: "user", content: "other" },
      { role: "assistant", content: "You said: other" },
      { role: "user", content: "on" },
    ]);
  });

  test("each choice of an answer has its own continuation", async () => {
    await page.locator("#settings summary", { hasText: "Choices" }).click();
    await page.getByLabel("Choices side by side").fill("2");
    await ask(page, "hello");
    await page.getByLabel("Choices side by side").fill("1");
    await ask(page, "after the first");
    await page.getByRole("button", { name: "Choice 2: continue from here" }).click();
    await answered(page, 1);
    await ask(page, "after the second");
    await page.getByRole("button", { name: "Choice 1: continue from here" }).click();
    await page.locator(".question .said", { hasText: "after the first" }).waitFor();
    await expect.poll(() => lastAnswer(page)).toBe("You said: after the first");
  });

  test("the list has the latest first; conversations are renamed, found, and opened where the text is", async () => {
    await ask(page, "apples are red");
    await ask(page, "long 300");
    await ask(page, "bananas are yellow");
    await begin(page);
    await ask(page, `cherries\nin the second line`);
    await expect.poll(() => titles(page)).toEqual(["cherries", "apples are red"]);
    await act(page, "cherries", "Rename");
    await page.getByLabel("New title of cherries").fill("Fruit of July");
    await page.keyboard.press("Enter");
    await expect.poll(() => titles(page)).toEqual(["Fruit of July", "apples are red"]);
    // The link has the focus again, and F2 renames.
    await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("Fruit of July");
    await page.keyboard.press("F2");
    await page.getByLabel("New title of Fruit of July").fill("nothing");
    await page.keyboard.press("Escape");
    await expect.poll(() => titles(page)).toEqual(["Fruit of July", "apples are red"]);

    const search = page.getByLabel("Search conversations");
    await search.fill("YELLOW");
    await page.getByText("1 conversation found.").waitFor();
    await expect.poll(() => titles(page)).toEqual(["apples are red"]);
    await expect.poll(() => page.locator(".conversations mark").textContent()).toBe("yellow");
    await page.getByRole("link", { name: "apples are red" }).click();
    const found = page.locator(".question .said", { hasText: "bananas" });
    await found.waitFor();
    expect(page.url()).toContain("#play/");
    await search.fill("july");
    await expect.poll(() => titles(page)).toEqual(["Fruit of July"]);
    await search.fill("grapes");
    await page.getByText("No conversation contains “grapes”.").waitFor();
    await search.fill("");
    await expect.poll(() => titles(page)).toEqual(["Fruit of July", "apples are red"]);
    await reload();
    await expect.poll(() => titles(page)).toEqual(["Fruit of July", "apples are red"]);
    // Each has its address: the browser's own buttons go from one to the other.
    await page.getByRole("link", { name: "Fruit of July" }).click();
    await page.locator(".question .said", { hasText: "cherries" }).waitFor();
    await page.goBack();
    await found.waitFor();
    await expect.poll(() => page.locator(".conversation > [aria-current]").textContent()).toBe("apples are red");
  });

  test("a deleted conversation is restored with everything; without Undo it is gone", async () => {
    await ask(page, "first");
    await page.locator(".answer").getByRole("button", { name: "Ask again" }).click();
    await page.locator(".versions", { hasText: "2 of 2" }).waitFor();
    await answered(page, 1);
    await act(page, "first", "Delete");
    await page.getByText("Deleted “first”.", { exact: true }).waitFor();
    await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("Undo");
    await expect.poll(() => titles(page)).toEqual([]);
    await expect.poll(() => page.locator(".turn").count()).toBe(0);
    await expect.poll(() => storedAnswers(page)).toEqual([]);
    await page.keyboard.press("Enter");
    await page.locator(".versions", { hasText: "2 of 2" }).waitFor();
    await reload();
    await page.locator(".versions", { hasText: "2 of 2" }).waitFor();
    await page.getByRole("link", { name: "first" }).press("Delete");
    await page.getByRole("button", { name: "Dismiss" }).click();
    await page.getByRole("button", { name: "Undo" }).waitFor({ state: "detached" });
    await reload();
    await page.getByRole("heading", { name: "Ask a model" }).waitFor();
    await expect.poll(() => titles(page)).toEqual([]);
    expect(page.url()).toMatch(/#play$/);
  });

  test("answers go on while another conversation is shown; deleting one stops its answer", async () => {
    await page.getByLabel("Your message", { exact: true }).fill("long 100000 100");
    await page.keyboard.press("Enter");
    await page.locator(".answer .said", { hasText: "w3 " }).waitFor();
    await begin(page);
    await page.getByLabel("Your message", { exact: true }).fill("long 99999 100");
    await page.keyboard.press("Enter");
    await page.locator(".answer .said", { hasText: "w3 " }).waitFor();
    await expect.poll(() => page.locator(".conversation .chip").allTextContents()).toEqual(["answering", "answering"]);
    await page.getByRole("link", { name: "long 100000 100" }).click();
    const said = page.locator(".answer .said");
    await expect.poll(() => said.textContent()).toContain("w50 ");
    await begin(page);
    await ask(page, "short");
    await expect.poll(() => page.locator(".conversation .chip").count()).toBe(2);
    const cancelled = async (): Promise<number> =>
      ((await (await fetch(`${at.server.url}/health`)).json()) as { requests: { cancelled: number } }).requests
        .cancelled;
    const before = await cancelled();
    await act(page, "long 100000 100", "Delete");
    await expect.poll(cancelled).toBe(before + 1);
    await expect.poll(() => page.locator(".conversation .chip").count()).toBe(1);
    // Restored, it is an answer that was stopped.
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("link", { name: "long 100000 100" }).click();
    await page.locator(".facts", { hasText: /^stopped/ }).waitFor();
    await expect.poll(() => lastAnswer(page)).toContain("w50 ");
  });

  test("an answer is kept as far as it came when the page is closed, and marked as interrupted", async () => {
    await page.getByLabel("Your message", { exact: true }).fill("long 100000 200");
    await page.keyboard.press("Enter");
    // What is stored while it grows: of a page that crashes, this much is left.
    const stored = async (): Promise<string> => (await storedAnswers(page))[0]?.text ?? "";
    await expect.poll(stored).toContain("w100 ");
    await page.locator(".answer .said", { hasText: "w300" }).waitFor();
    await reload();
    await page.getByText("Interrupted: the page was closed before the answer was complete.").waitFor();
    await page.locator(".facts", { hasText: /^interrupted/ }).waitFor();
    // It was stored once more when the page was closed.
    await expect.poll(() => lastAnswer(page)).toContain("w300");
    await expect.poll(() => page.locator(".chip", { hasText: "answering" }).count()).toBe(0);
    await ask(page, "and then?");
    expect(JSON.stringify(asked.at(-1)?.["messages"])).toContain("w300");
  });

  // An interrupted answer could only be asked for again, from its first word.
  test("an interrupted answer goes on where the server still has its stream", async () => {
    await page.getByLabel("Your message", { exact: true }).fill("long 200 100");
    await page.keyboard.press("Enter");
    await page.locator(".answer .said", { hasText: "w50 " }).waitFor();
    await reload();
    await page.locator(".facts", { hasText: /^interrupted/ }).waitFor();
    await expectAccessible(page, "an interrupted answer");
    await page.getByRole("button", { name: "Continue" }).click();
    await answered(page, 1);
    const words = Array.from({ length: 200 }, (_, at) => `w${at}`);
    await expect.poll(async () => (await lastAnswer(page)).trim().split(/\s+/)).toEqual(words);
    await expect.poll(() => page.locator(".facts").textContent()).toContain("200 tokens");
    // Of one that goes on, the page has measured nothing.
    await expect.poll(() => page.locator(".facts").textContent()).not.toContain("first token");
    expect(asked).toHaveLength(1);
    await expect.poll(async () => (await storedAnswers(page)).map(({ state }) => state)).toEqual(["done"]);
    await reload();
    await expect.poll(async () => (await lastAnswer(page)).trim().split(/\s+/)).toEqual(words);
  });

  test("one that was stopped, or whose stream is gone, is continued by the model after its own words", async () => {
    await page.getByLabel("Your message", { exact: true }).fill("long 100000 100");
    await page.keyboard.press("Enter");
    await page.locator(".answer .said", { hasText: "w20 " }).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.locator(".facts", { hasText: /^stopped/ }).waitFor();
    // Closing the connection of a stream that can be resumed does not end it: the button does.
    const isOpen = async (): Promise<string[]> => {
      const listed = (await (await fetch(`${at.server.url}/admin/requests`)).json()) as InspectedRequestList;
      return listed.requests.slice(-1).map(({ outcome }) => outcome);
    };
    await expect.poll(isOpen).toEqual(["cancelled"]);
    const before = (await storedAnswers(page))[0]?.text ?? "";
    await page.getByRole("button", { name: "Continue" }).click();
    await answered(page, 1);
    expect(asked[1]).toMatchObject({
      messages: [
        { role: "user", content: "long 100000 100" },
        { role: "assistant", content: before },
      ],
      add_generation_prompt: false,
      continue_final_message: true,
    });
    await expect
      .poll(async () => (await storedAnswers(page))[0])
      .toEqual({ state: "done", text: `${before}You said: ${before}` });
    await expect.poll(() => page.getByRole("button", { name: "Continue" }).count()).toBe(0);
  });

  test("two tabs have the same list, see each other's turns, and lose none of them", async () => {
    await ask(page, "from the first tab");
    const second = await secondTab(page);
    await answered(second, 1);
    // Both ask in the same conversation at the same time: neither replaces the other's turn.
    await Promise.all(
      [page, second].map(async (one, at) => {
        await one.getByLabel("Your message", { exact: true }).fill(at === 0 ? "one" : "two");
        await one.keyboard.press("Enter");
      }),
    );
    const states = async (): Promise<string[]> => (await storedAnswers(page)).map(({ state }) => state);
    await expect.poll(states).toEqual(["done", "done", "done"]);
    await begin(second);
    await ask(second, "from the second tab");
    await expect.poll(() => titles(page)).toEqual(["from the second tab", "from the first tab"]);
    // An answer that another tab receives is marked there, and is not interrupted.
    await second.getByLabel("Your message", { exact: true }).fill("long 100000 100");
    await second.keyboard.press("Enter");
    await page.locator(".conversation .chip").waitFor();
    await page.getByRole("link", { name: "from the second tab" }).click();
    await page.getByText("Being received in another tab.").waitFor();
    await expect.poll(() => lastAnswer(page)).toContain("w30 ");
    await second.getByRole("button", { name: "Stop" }).click();
    await page
      .locator(".answer")
      .last()
      .locator(".facts", { hasText: /^stopped/ })
      .waitFor();
    // A conversation that is deleted in one tab is not written again by the other.
    await second.getByLabel("Your message", { exact: true }).fill("long 100000 100");
    await second.keyboard.press("Enter");
    await page.locator(".conversation .chip").waitFor();
    await act(page, "from the second tab", "Delete");
    await expect.poll(() => titles(second)).toEqual(["from the first tab"]);
    await second.getByRole("heading", { name: "Ask a model" }).waitFor();
    await reload();
    await expect.poll(() => titles(page)).toEqual(["from the first tab"]);
    await expect
      .poll(async () => (await storedAnswers(page)).map(({ text }) => text).toSorted())
      .toEqual(["You said: from the first tab", "You said: one", "You said: two"]);
  });

  test("a tab that only reads shows each word, the end, and nothing as interrupted before that", async () => {
    await ask(page, "begin");
    const second = await secondTab(page);
    await answered(second, 1);
    // What the second tab shows under its answers, whenever that changes.
    await second.evaluate(`
      globalThis.shown = new Set();
      new MutationObserver(() => {
        for (const facts of document.querySelectorAll(".facts")) shown.add(facts.textContent.split(" ")[0]);
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    `);
    await ask(page, "long 300 200");
    await expect.poll(() => lastAnswer(second)).toContain("w299");
    await expect.poll(() => second.locator(".answer[aria-busy=true]").count()).toBe(0);
    for (const tab of [page, second]) {
      const words = async (): Promise<string[]> => (await lastAnswer(tab)).trim().split(/\s+/);
      await expect.poll(words).toEqual(Array.from({ length: 300 }, (_, at) => `w${at}`));
    }
    expect(await second.evaluate("[...shown].join()")).not.toContain("interrupted");
    // Closed in the middle, the last words that were stored are shown by the other tab.
    await page.getByLabel("Your message", { exact: true }).fill("long 100000 200");
    await page.keyboard.press("Enter");
    await page.locator(".answer[aria-busy=true] .said", { hasText: "w100 " }).waitFor();
    await page.goto("about:blank");
    await second.locator(".facts", { hasText: /^interrupted/ }).waitFor();
    await expect.poll(() => lastAnswer(second)).toContain("w100 ");
  });

  // "Being received in another tab" stayed until a reload when that tab had crashed, which sends no message.
  test("the answer of a tab that crashes is interrupted in the others", async () => {
    await ask(page, "begin");
    const second = await secondTab(page);
    await second.getByLabel("Your message", { exact: true }).fill("long 100000 200");
    await second.keyboard.press("Enter");
    await page.getByText("Being received in another tab.").waitFor();
    await page.locator(".answer .said", { hasText: "w100 " }).waitFor();
    const crashed = second.waitForEvent("crash");
    const debugging = await page.context().newCDPSession(second);
    // The command gets no reply: its process is gone.
    debugging.send("Page.crash").catch(() => {});
    await crashed;
    await page.locator(".facts", { hasText: /^interrupted/ }).waitFor();
    await page.getByText("Being received in another tab.").waitFor({ state: "detached" });
    await expect.poll(() => lastAnswer(page)).toContain("w100 ");
    // A tab that crashed before this one was opened is not waited for.
    const third = await secondTab(page);
    await third.locator(".facts", { hasText: /^interrupted/ }).waitFor();
  });

  test("what is exported is imported with all versions, and as a copy", async () => {
    await ask(page, "think");
    await ask(page, "second");
    await page.locator(".answer").last().getByRole("button", { name: "Ask again" }).click();
    await page.locator(".versions", { hasText: "2 of 2" }).waitFor();
    await answered(page, 2);
    const download = page.waitForEvent("download");
    await act(page, "think", "Export");
    const file = await download;
    expect(file.suggestedFilename()).toBe("think.json");
    const text = await readFile(await file.path(), "utf8");
    const exported = JSON.parse(text) as { conversations: { turns: unknown[] }[] };
    expect(exported).toMatchObject({
      format: "truewire/conversations",
      version: 1,
      conversations: [{ title: "think" }],
    });
    expect(exported.conversations[0]?.turns.length).toBe(5);
    await importFile(page, "think.json", text);
    await expect.poll(() => titles(page)).toEqual(["think", "think"]);
    await page.locator(".versions", { hasText: "2 of 2" }).waitFor();
    await ask(page, "only in the copy");
    await reload();
    await answered(page, 3);
    await page.getByRole("link", { name: "think" }).last().click();
    await answered(page, 2);
    const all = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export all" }).click();
    const both = JSON.parse(await readFile(await (await all).path(), "utf8")) as typeof exported;
    expect(both.conversations.map(({ turns }) => turns.length)).toEqual([7, 5]);
    // As a program, it is the request of the last answer.
    await act(page, "think", "Copy as…");
    await page.getByLabel("Python", { exact: true }).check();
    await expect.poll(() => page.locator("dialog pre").textContent()).toContain('"content": "second"');
    await page.keyboard.press("Escape");
  });

  test("OpenAI's messages are imported and continued; of a damaged file, the place is named", async () => {
    await importFile(page, "messages.json", [
      { role: "system", content: "Be brief." },
      { role: "user", content: "hello" },
      { role: "assistant", content: "Hi." },
    ]);
    await answered(page, 1);
    await expect.poll(() => titles(page)).toEqual(["hello"]);
    await ask(page, "on");
    expect(asked.at(-1)?.["messages"]).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "hello" },
      { role: "assistant", content: "Hi." },
      { role: "user", content: "on" },
    ]);
    await importFile(page, "bad.json", [{ role: "user", content: [{ type: "video" }] }]);
    await page
      .locator(".banner.wrong", {
        hasText:
          'bad.json was not imported. messages[0].content[0].type: expected "text", "image_url" or "file", found "video".',
      })
      .waitFor();
    await importFile(page, "bad.json", "{");
    await page.locator(".banner.wrong", { hasText: "The file is not valid JSON" }).waitFor();
    await expect.poll(() => titles(page)).toEqual(["hello"]);
  });

  // A large file blocked the page without a word, and what was not stored when it was left was lost.
  test("an import says how far it is, goes on while the page answers, and goes on after a reload", async () => {
    const turns = (number: number): object[] => [
      { id: "q", parent: "", created: 1, kind: "question", text: `question ${number}`, images: [] },
    ];
    const count = 800 * pageSize;
    const conversations = Array.from({ length: count }, (_, number) => ({
      title: `imported ${number}`,
      created: 1,
      changed: count - number,
      turns: turns(number),
    }));
    await importFile(page, "many.json", { format: "truewire/conversations", version: 1, conversations });
    const progress = page.locator(".notices", { hasText: /Importing many\.json: [\d,]+ of [\d,]+ conversations/ });
    await progress.first().waitFor();
    await expectAccessible(page, "an import");
    await ask(page, "hello");
    await reload();
    await progress.first().waitFor();
    await page.locator("[role=status]", { hasText: `${count} conversations imported.` }).waitFor({ state: "attached" });
    // Each of them once.
    const stored = (): Promise<string[]> =>
      page.evaluate(`new Promise((resolve) => {
        const opening = indexedDB.open("truewire/");
        opening.onsuccess = () => {
          const reading = opening.result.transaction("conversations").objectStore("conversations").getAll();
          reading.onsuccess = () => resolve(reading.result.map(({ title }) => title));
        };
      })`);
    await expect
      .poll(async () => (await stored()).toSorted())
      .toEqual(["hello", ...conversations.map(({ title }) => title)].toSorted());
    await expect.poll(() => page.locator(".notices").count()).toBe(0);
    await reload();
    await expect.poll(async () => (await stored()).length).toBe(count + 1);
    await page.getByLabel("Search conversations").fill(`question ${count - 1}`);
    await expect.poll(() => titles(page)).toEqual([`imported ${count - 1}`]);
  });

  test("text of a file is shown as text, and an image from elsewhere is a link", async () => {
    const text = '<img src=x onerror="document.title=1"><script>document.title=1</script>';
    await importFile(page, "hostile.json", [
      {
        role: "user",
        content: [
          { type: "text", text },
          { type: "image_url", image_url: { url: "https://example.com/pixel.png" } },
        ],
      },
      { role: "assistant", content: text },
    ]);
    await answered(page, 1);
    await expect.poll(() => titles(page)).toEqual([text]);
    await expect.poll(() => page.locator(".turn img, .turn script").count()).toBe(0);
    const link = page.getByRole("link", { name: "Image 1" });
    await expect.poll(() => link.getAttribute("rel")).toBe("noopener noreferrer");
    await expect.poll(() => page.title()).toBe("Truewire");
  });

  test("a growing answer is stored a few times, however long it is", async () => {
    await page.evaluate(`
      globalThis.writes = 0;
      const put = IDBObjectStore.prototype.put;
      IDBObjectStore.prototype.put = function (value, ...rest) {
        if (value.kind === "answer") writes++;
        return put.call(this, value, ...rest);
      };
    `);
    const begun = performance.now();
    await page.getByLabel("Your message", { exact: true }).fill(`long ${20_000 * pageSize}`);
    await page.keyboard.press("Enter");
    await answered(page, 1);
    const seconds = (performance.now() - begun) / 1000;
    // At its beginning, at its end, and at most once a second between them.
    expect(await page.evaluate("writes")).toBeLessThanOrEqual(seconds + 2);
    await expect.poll(async () => (await storedAnswers(page))[0]?.text).toContain(`w${20_000 * pageSize - 1} `);
  });
}

function notKept(at: PageUnderTest): void {
  test("without IndexedDB, conversations last as long as the page, which says so", async () => {
    const { page, wrong, close } = await at.open();
    await page.addInitScript("Object.defineProperty(globalThis, 'indexedDB', { value: undefined })");
    await page.reload();
    await page
      .getByText("This browser stores nothing for this page: conversations are lost when the page is closed.")
      .waitFor();
    await ask(page, "hello");
    await begin(page);
    await ask(page, "again");
    await expect.poll(() => titles(page)).toEqual(["again", "hello"]);
    await page.getByRole("link", { name: "hello" }).click();
    await page.locator(".question .said", { hasText: "hello" }).waitFor();
    await expect.poll(() => lastAnswer(page)).toBe("You said: hello");
    await act(page, "again", "Delete");
    await page.getByRole("button", { name: "Undo" }).click();
    await expect.poll(() => titles(page)).toEqual(["again", "hello"]);
    expect(wrong).toEqual([]);
    await close();
  });

  test("when the storage is full, the chat goes on; what was not stored is stored as soon as there is space", async () => {
    const { page, wrong, close } = await at.open();
    await ask(page, "before");
    await page.evaluate(`
      globalThis.put = IDBObjectStore.prototype.put;
      IDBObjectStore.prototype.put = () => { throw new DOMException("full", "QuotaExceededError"); };
    `);
    await ask(page, "while it is full");
    // For a moment, the announcement to screen readers has the same text.
    const banner = page.locator(".banner", { hasText: "The browser's storage is full" });
    await banner.waitFor();
    await expect.poll(() => lastAnswer(page)).toBe("You said: while it is full");
    await page.evaluate("IDBObjectStore.prototype.put = put");
    await ask(page, "after");
    await banner.waitFor({ state: "detached" });
    await page.reload();
    await answered(page, 3);
    await expect
      .poll(() => page.locator(".question .said").allTextContents())
      .toEqual(["before", "while it is full", "after"]);
    expect(wrong).toEqual([]);
    await close();
  });

  test("entries that another version of the page has written are left out", async () => {
    const { page, wrong, close } = await at.open();
    await ask(page, "hello");
    await page.evaluate(`new Promise((resolve) => {
      const opening = indexedDB.open("truewire/");
      opening.onsuccess = () => {
        const writing = opening.result.transaction(["conversations", "turns"], "readwrite");
        writing.objectStore("conversations").put({ id: "x", future: true });
        const conversation = location.hash.split("/")[1];
        writing.objectStore("turns").put({ conversation, id: "y", parent: "", created: 1, kind: "hologram" });
        writing.oncomplete = () => resolve(opening.result.close());
      };
    })`);
    await page.reload();
    await answered(page, 1);
    await expect.poll(() => titles(page)).toEqual(["hello"]);
    expect(wrong).toEqual([]);
    await close();
  });
}

function forEverybody(at: PageUnderTest): void {
  test.each(looksOf(5))("axe finds nothing: %s", async (_, options) => {
    const { page, wrong, close } = await at.open("play", options);
    const narrow = options.viewport.width < 1200;
    await ask(page, "a rather long title that does not fit into the list, however wide the window may be");
    await page.getByRole("button", { name: "Ask again" }).click();
    await page.locator(".versions", { hasText: "2 of 2" }).waitFor();
    await answered(page, 1);
    await page.getByRole("button", { name: "Delete this version" }).click();
    await page.getByText("Deleted a version.", { exact: true }).waitFor();
    await expectAccessible(page, "a version was deleted");
    await page.getByRole("button", { name: "Undo" }).click();
    await page.locator(".versions", { hasText: "2 of 2" }).waitFor();
    await begin(page);
    await page.getByLabel("Your message", { exact: true }).fill("long 100000 20");
    await page.keyboard.press("Enter");
    await page.locator(".answer .said", { hasText: "w3 " }).waitFor();
    if (narrow) await page.getByRole("button", { name: "Conversations" }).click();
    await page.getByRole("button", { name: /^Actions for a rather/ }).click();
    await page.getByLabel("Search conversations").fill("t");
    await page.locator(".conversations mark").first().waitFor();
    await expectAccessible(page, "a list with an answer, actions and matches");
    await page.getByRole("button", { name: "Rename" }).click();
    await importFile(page, "bad.json", "[7]");
    await page.locator(".banner.wrong").waitFor();
    await expectAccessible(page, "a title that is renamed, and an error");
    if (narrow) await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: "Stop" }).click();
    await expectAccessible(page, "two conversations");
    expect(wrong).toEqual([]);
    await close();
  });

  test("on a phone the list is a drawer, which the keyboard opens, uses and closes", async () => {
    const { page, wrong, close } = await at.open("play", { viewport: { width: 390, height: 800 } });
    await ask(page, "hello");
    await page.getByRole("button", { name: "Conversations" }).press("Enter");
    const drawer = page.getByRole("dialog", { name: "Conversations" });
    await drawer.waitFor();
    const focused = (): Promise<unknown> => page.evaluate("document.activeElement.textContent");
    await expect.poll(() => focused()).toBe("New conversation");
    await page.keyboard.press("Enter");
    await drawer.waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "Ask a model" }).waitFor();
    await ask(page, "second");
    await page.getByRole("button", { name: "Conversations" }).press("Enter");
    await page.getByRole("link", { name: "hello" }).press("Delete");
    await expect.poll(focused).toBe("Undo");
    await page.keyboard.press("Escape");
    await drawer.waitFor({ state: "detached" });
    // What was deleted can still be restored.
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("button", { name: "Conversations" }).press("Enter");
    await drawer.getByRole("link", { name: "hello" }).press("Enter");
    await drawer.waitFor({ state: "detached" });
    await expect.poll(() => lastAnswer(page)).toBe("You said: hello");
    expect(wrong).toEqual([]);
    await close();
  });
}
