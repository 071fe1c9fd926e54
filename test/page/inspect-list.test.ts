import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { InspectedRequestList } from "../../src/judge/inspect/inspected-request.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { describePage, looksOf, talker } from "../support/describe-page.ts";
import { expectAccessible } from "../support/open-page.ts";
import { chat, json } from "../support/transports.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-inspect-list-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function rows(page: Page): Locator {
  return page.locator(".request-row");
}

function button(page: Page, name: string | RegExp): Locator {
  return page.getByRole("button", { name });
}

/** Counts the clicks of a task; keys that are pressed count, too. */
class Task {
  readonly #name: string;
  #clicks = 0;

  constructor(name: string) {
    this.#name = name;
  }

  async click(target: Locator): Promise<void> {
    this.#clicks++;
    await target.click();
  }

  done(max: number): void {
    console.log(`${this.#name}: ${this.#clicks} clicks`);
    expect(this.#clicks).toBeLessThanOrEqual(max);
  }
}

/** A local model, and a program. */
function models(): Promise<string[]> {
  const model = join(folder, "programmed.gguf");
  writeProgrammedModel(model);
  return Promise.resolve([model, "--gpu", "off", "--threads", "1", talker]);
}

describePage("The list of Inspect", models, (at) => {
  const post = async (body: object, headers: object = {}, path = "chat/completions"): Promise<void> => {
    const init = json(body);
    const response = await fetch(`${at.server.url}/v1/${path}`, { ...init, headers: { ...init.headers, ...headers } });
    await response.text();
  };
  const asked = (content: string, more: object = {}): Promise<void> =>
    post({ model: "talker", messages: [{ role: "user", content }], stream: true, ...more });
  const cleared = async (): Promise<void> => {
    expect((await fetch(`${at.server.url}/admin/requests`, { method: "DELETE" })).status).toBe(200);
  };
  const session = { "x-claude-code-session-id": "s-1", "user-agent": "claude-cli/2.1.330 (external, sdk-cli)" };

  /** A session of three turns, with a title, a sub-agent and a count of tokens. */
  const agentSession = async (): Promise<void> => {
    const first = { role: "user", content: "long 20 200" };
    const then = [first, { role: "assistant", content: "w0" }, { role: "user", content: "long 30 300" }];
    const system = { role: "system", content: "You are an agent." };
    const ask = (messages: object[], headers: object = {}): Promise<void> =>
      post({ model: "talker", messages, stream: true }, { ...session, ...headers });
    await ask([system, first]);
    await ask([{ role: "system", content: "Generate a short title." }, first]);
    await ask(
      [
        { role: "system", content: "You search." },
        { role: "user", content: "Search!" },
      ],
      {
        "x-claude-code-agent-id": "a-1",
      },
    );
    await post({ model: "talker", messages: [first] }, session, "messages/count_tokens");
    await ask([system, ...then]);
    // The next turn comes a moment later: times are whole milliseconds, and within one there was no gap between two requests.
    const ended = Date.now();
    await expect.poll(() => Date.now()).toBeGreaterThan(ended + 5);
    await ask([system, ...then, { role: "assistant", content: "w1" }, { role: "user", content: "fail" }]);
  };

  test("the one failed request of 170 is found with two clicks", async () => {
    await cleared();
    for (let round = 0; round < 17; round++)
      await Promise.all(Array.from({ length: 10 }, (_, one) => asked(round === 8 && one === 4 ? "fail" : "zero")));
    const { page, wrong, close } = await at.open("inspect");
    await page.getByText(/^170 requests$/).waitFor();
    const task = new Task("find the one failed request of 170");
    await task.click(button(page, "Failed 1"));
    await expect.poll(() => rows(page).count()).toBe(1);
    await task.click(rows(page));
    await page.locator(".inspected .banner.wrong", { hasText: "The talker will not." }).waitFor();
    task.done(2);
    // The address keeps the filter and the request.
    await expect.poll(() => page.evaluate("location.hash")).toMatch(/^#inspect\/req_\w+(\/\w+)?\?outcome=error$/);
    await page.reload();
    await expect.poll(() => rows(page).count()).toBe(1);
    await button(page, "Clear filters").click();
    await page.getByText(/^170 requests$/).waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  test("which requests missed the cache, and why, is seen with one click", async () => {
    await cleared();
    const day = (date: string): Promise<void> =>
      post({
        model: "programmed",
        messages: [
          {
            role: "system",
            content: `Today is ${date}. You help people who know little of foxes, and say what there is to say.`,
          },
          { role: "user", content: "#plain" },
        ],
      });
    for (const date of ["2026-01-01", "2026-01-01", "2026-01-02"]) await day(date);
    for (let one = 0; one < 20; one++) await asked("zero");
    const { page, wrong, close } = await at.open("inspect");
    await page.getByText(/^23 requests$/).waitFor();
    const task = new Task("which requests missed the cache and why");
    await task.click(button(page, "Cache missed 1"));
    await expect.poll(() => rows(page).count()).toBe(1);
    await rows(page).getByText("A date or time changed in messages[0].").waitFor();
    task.done(1);
    expect(wrong).toEqual([]);
    await close();
  });

  test("a session is one row; its waterfall and table show each request, by keys alone", async () => {
    await cleared();
    await asked("zero");
    await agentSession();
    const { page, wrong, close } = await at.open("inspect");
    await expect.poll(() => rows(page).count()).toBe(2);
    const row = rows(page).first();
    await row.getByText(/claude-cli\/2\.1\.330 · 3 turns, 3 side requests/).waitFor();
    await expect.poll(() => row.locator(".row-snippet").textContent()).toBe("▸long 20 200");
    await expect.poll(() => row.locator(".row-outcome").textContent()).toBe("1 failed");
    const list = page.getByRole("tree");
    await list.focus();
    await page.keyboard.press("ArrowDown");
    await page.getByRole("article", { name: "Session" }).waitFor();
    await expect.poll(() => row.getAttribute("aria-expanded")).toBe("false");
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => rows(page).count()).toBe(8);
    await expect
      .poll(() => rows(page).locator(".row-snippet .chip").allTextContents())
      .toEqual(["turn 3", "turn 2", "token count", "sub-agent, turn 1", "title", "turn 1"]);
    await page.keyboard.press("ArrowRight");
    await page.getByRole("article", { name: /^Request req_/ }).waitFor();
    await button(page, "Its session: 3 turns, 3 side requests").waitFor();
    await page.keyboard.press("ArrowLeft");
    await page.getByRole("article", { name: "Session" }).waitFor();
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => rows(page).count()).toBe(2);

    const bars = page.locator(".bar-row");
    await expect.poll(() => bars.count()).toBe(6);
    await bars.first().focus();
    await expect
      .poll(() => page.locator(".bar-numbers").textContent())
      .toMatch(
        /^turn 1 finished in [\d.]+ m?s · began after 0\.0 ms · time to first token [\d.]+ m?s · generation [\d.]+ m?s · 3 tokens in · 20 out/,
      );
    await page.getByText("Other servers and programs do not report their queue").waitFor();
    await page.keyboard.press("End");
    await expect
      .poll(() => page.locator(".bar-numbers").textContent())
      .toMatch(/^turn 3 refused 422 after .*gap before it/);
    await page.getByText("The same as a table").click();
    await expect.poll(() => page.locator(".table-box tbody tr").count()).toBe(6);
    await bars.last().focus();
    await page.keyboard.press("Enter");
    await page.locator(".inspected .banner.wrong", { hasText: "The talker will not." }).waitFor();
    // The address leads to the request, and its session is open.
    await page.reload();
    await page.locator(".request-row[aria-selected=true]", { hasText: "turn 3" }).waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  test("a local model's queue and prompt processing are phases of their own", async () => {
    await cleared();
    const messages = [{ role: "user", content: "#plain" }];
    await post({ model: "programmed", messages, stream: true }, session);
    await post({ model: "programmed", messages, stream: true }, session);
    const { page, wrong, close } = await at.open("inspect");
    await rows(page).first().click();
    await page.locator(".phase-name", { hasText: "prompt processing" }).waitFor();
    await page.locator(".bar-row").first().focus();
    await expect
      .poll(() => page.locator(".bar-numbers").textContent())
      .toMatch(/prompt processing [\d.]+ m?s · generation/);
    await expect.poll(() => page.getByText("Other servers and programs do not report").count()).toBe(0);
    expect(wrong).toEqual([]);
    await close();
  });

  test("a search marks its words, combines with filters, and finds new requests", async () => {
    await cleared();
    await asked("The quick brown fox");
    await asked("fail now");
    await asked("zero");
    const { page, wrong, close } = await at.open("inspect");
    await expect.poll(() => rows(page).count()).toBe(3);
    await page.keyboard.press("/");
    await page.keyboard.type("FOX quick");
    await expect.poll(() => rows(page).count()).toBe(1);
    await expect.poll(() => rows(page).locator("mark").allTextContents()).toEqual(["quick", "fox"]);
    await rows(page).getByText("in the request:").waitFor();
    await asked("Another fox, quick");
    await expect.poll(() => rows(page).count()).toBe(2);
    await page.getByLabel("Search requests").fill("will not");
    await expect.poll(() => rows(page).count()).toBe(1);
    await rows(page).getByText("in the line:").waitFor();
    await page.getByLabel("How they ended").selectOption("finished");
    await expect.poll(() => rows(page).count()).toBe(0);
    await page.getByText("No request matches.").waitFor();
    await expect.poll(() => page.evaluate("location.hash")).toBe("#inspect?q=will+not&outcome=finished");
    await button(page, "Clear filters").click();
    await expect.poll(() => rows(page).count()).toBe(4);
    await expect.poll(() => page.getByLabel("Search requests").inputValue()).toBe("");
    expect(wrong).toEqual([]);
    await close();
  });

  test("a paused list stands still and counts new requests; a cleared one is empty for all who look", async () => {
    await cleared();
    await asked("zero");
    const { page, wrong, close } = await at.open("inspect");
    const other = await at.open("inspect");
    await expect.poll(() => rows(page).count()).toBe(1);
    await button(page, "Pause").click();
    await asked("one");
    await asked("two");
    await button(page, "Resume (2 new)").waitFor();
    expect(await rows(page).count()).toBe(1);
    await button(page, "Resume (2 new)").click();
    await expect.poll(() => rows(page).count()).toBe(3);
    await expect.poll(() => rows(other.page).count()).toBe(3);
    await button(page, "Clear requests").click();
    for (const one of [page, other.page]) {
      await expect.poll(() => rows(one).count()).toBe(0);
      await one.getByText("No requests yet.").waitFor();
    }
    await asked("three");
    await expect.poll(() => rows(page).count()).toBe(1);
    expect([...wrong, ...other.wrong]).toEqual([]);
    await other.close();
    await close();
  });

  test("a request, a session and what is listed are saved as HAR and as a recording", async () => {
    await cleared();
    await asked("zero");
    await agentSession();
    const { page, wrong, close } = await at.open("inspect");
    await rows(page).first().click();
    const saved = async (name: string): Promise<[file: string, text: string]> => {
      const [download] = await Promise.all([page.waitForEvent("download"), button(page, name).first().click()]);
      return [download.suggestedFilename(), readFileSync(await download.path(), "utf8")];
    };
    const [har, archive] = await saved("Save session as HAR");
    expect(har).toBe("session.har");
    expect((JSON.parse(archive) as { log: { entries: unknown[] } }).log.entries).toHaveLength(6);
    const [recording, lines] = await saved("Save session as recording");
    expect(recording).toBe("session.jsonl");
    expect(lines.trim().split("\n")).toHaveLength(6);
    await rows(page).last().click();
    await page.locator(".menu summary").click();
    expect((await saved("Save request as recording"))[1].trim().split("\n")).toHaveLength(1);
    const [all, text] = await saved("Save all requests as HAR");
    expect(all).toBe("all-requests.har");
    expect((JSON.parse(text) as { log: { entries: unknown[] } }).log.entries).toHaveLength(7);
    await page.keyboard.press("Escape");
    await expect.poll(() => page.locator(".menu[open]").count()).toBe(0);
    // What cannot be saved is counted.
    const leaving = new AbortController();
    const going = fetch(`${at.server.url}/v1/chat/completions`, {
      ...chat("long 100000 50", { model: "talker", stream: true }),
      signal: leaving.signal,
    }).then((response) => response.text());
    await rows(page).filter({ hasText: "open" }).first().waitFor();
    await page.locator(".menu summary").click();
    expect((await saved("Save all requests as recording"))[1].trim().split("\n")).toHaveLength(7);
    await page.getByText("1 request was left out").waitFor();
    leaving.abort();
    await going.catch(() => {});
    expect(wrong).toEqual([]);
    await close();
  });

  test("10,000 requests: only rows in sight are rendered, and the keys go from the first to the last", async () => {
    const { page, wrong, close } = await at.open("play");
    const requests = Array.from({ length: 10_000 }, (_, at) => ({
      id: `req_${at}`,
      number: at + 1,
      at: Date.now() - (10_000 - at) * 1000,
      method: "POST",
      path: "/v1/messages",
      outcome: "finished",
      ms: 200,
      first_ms: 50,
      model: `model ${at % 5}`,
      snippet: `Question ${at}`,
      // Sessions of 50 requests.
      ...(at % 2 === 0 && { thread: `req_${Math.floor(at / 100) * 100}`, conversation: "c", turn: (at % 100) / 2 + 1 }),
    }));
    await page.route("**/admin/requests", (route) =>
      route.fulfill({ json: { requests, bytes: 0, max_bytes: 1, dropped: 0 } }),
    );
    await page.getByRole("link", { name: "Inspect" }).click();
    await page.getByText(/^10,000 requests$/).waitFor();
    await expect.poll(() => rows(page).count()).toBeLessThan(80);
    const frames = (await page.evaluate(`new Promise((resolve) => {
      const list = document.querySelector(".request-list");
      const times = [];
      let last = performance.now();
      const step = () => {
        const now = performance.now();
        times.push(now - last);
        last = now;
        list.scrollTop += 400;
        if (times.length < 200) requestAnimationFrame(step);
        else resolve(times.sort((a, b) => a - b));
      };
      requestAnimationFrame(step);
    })`)) as number[];
    console.log(
      `10,000 rows: frames of ${frames[100]?.toFixed(1)} ms (median), ${frames[197]?.toFixed(1)} ms (99 of 100) while scrolling`,
    );
    await expect.poll(() => rows(page).count()).toBeLessThan(80);
    await page.getByRole("tree").focus();
    await page.keyboard.press("End");
    await page.locator(".request-row[aria-selected=true]", { hasText: "Question" }).waitFor();
    await page.keyboard.press("Home");
    await page.locator(".request-row[aria-selected=true]", { hasText: "Question 9999" }).waitFor();
    await page.getByLabel("Model of the requests").selectOption("model 3");
    await page.getByText(/^2,000 of 10,000 requests$/).waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  test.each(looksOf(6))("axe finds nothing: %s", async (_, options) => {
    await cleared();
    await asked("zero");
    await agentSession();
    const { page, wrong, close } = await at.open("inspect", options);
    const narrow = options.viewport.width < 900;
    await expect.poll(() => rows(page).count()).toBe(2);
    await button(page, "More filters").click();
    await expectAccessible(page, "all filters");
    await rows(page).first().click();
    await page.getByText("The same as a table").click();
    await expectAccessible(page, "a session");
    if (narrow) await button(page, "Back to the list").click();
    await page.getByLabel("Search requests").fill("zero");
    await rows(page).locator("mark").first().waitFor();
    await page.locator(".menu summary").click();
    await expectAccessible(page, "a search, and what can be exported");
    await button(page, "Cache missed 0").click();
    await expect.poll(() => rows(page).count()).toBe(0);
    await expectAccessible(page, "nothing found");
    expect(wrong).toEqual([]);
    await close();
  });
});

const keys = ["--api-key", "client-key-12345678", "--admin-key", "admin-key-12345678"];

describePage("Inspect of a server with keys and without --inspect", [talker, ...keys], (at) => {
  beforeAll(async () => {
    await (await fetch(`${at.server.url}/v1/chat/completions`, chat("hi"))).text();
  });

  // The page asked for the admin key first, and said only then that there is nothing to see.
  test("says so before it asks for a key", async () => {
    const { page, wrong, close } = await at.open("inspect");
    await button(page, "Cancel").click();
    await page.locator(".banner", { hasText: "--inspect" }).waitFor();
    await expect.poll(() => page.getByLabel("Admin key").count()).toBe(0);
    expect(wrong).toEqual([]);
    await close();
  });
});

const question = { model: "talker", messages: [{ role: "user", content: "hello" }] };

describePage("Inspect of requests that are not kept whole", [talker, "--inspect-size", "1MiB"], (at) => {
  beforeAll(async () => {
    const post = async (body: object): Promise<void> => {
      await (await fetch(`${at.server.url}/v1/chat/completions`, json(body))).text();
    };
    // Longer than what is kept of a text. All at once are more than what is kept, on a slow machine, too.
    const long = { ...question, messages: [{ role: "system", content: "x".repeat(60_000) }, ...question.messages] };
    await post(question);
    await Promise.all(Array.from({ length: 60 }, () => post(long)));
  });

  // For each of 83 such requests, the page asked for a capture that the server does not have, and was answered 409; and it searched twice.
  test("asks for one search and for no capture that is not there; each row says why it has no text", async () => {
    const { requests } = (await (await fetch(`${at.server.url}/admin/requests`)).json()) as InspectedRequestList;
    expect(requests.filter(({ brief, cut }) => brief || cut).length).toBeGreaterThan(5);
    // All rows are in sight: only those are rendered. How many of the last requests had texts depends on how quick the machine is.
    const { page, wrong, close } = await at.open("check", { viewport: { width: 1280, height: 8000 } });
    // From the hash of the page that is open, the search would begin before the reload, and once more after it.
    await page.goto("about:blank");
    const asked: string[] = [];
    const refused: number[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    page.on("response", (response) => response.status() >= 400 && refused.push(response.status()));
    await page.goto(`${at.server.url}/#inspect?q=talker`);
    await expect.poll(() => rows(page).count()).toBeGreaterThan(5);
    await page.locator(".requests", { hasText: "searching…" }).waitFor({ state: "detached" });
    const searches = (): string[] => asked.filter((path) => path.endsWith("/search"));
    await expect.poll(() => searches().length).toBe(1);
    await page.getByLabel("Search requests").fill("");
    await rows(page)
      .filter({ hasText: /texts not kept|partly kept/ })
      .first()
      .waitFor();
    const texts = await rows(page).locator(".row-snippet").allTextContents();
    expect(texts.filter((text) => text.trim() === "")).toEqual([]);
    expect(texts.join("\n")).toMatch(/Requests came faster than their texts are kept|Too long to be kept completely/);
    await rows(page).filter({ hasText: "partly kept" }).first().click();
    await page.getByRole("tab", { name: "Findings" }).click();
    await page
      .getByText("The rules cannot run: the request has no answer, or was too long to be kept completely.")
      .waitFor();
    expect(refused).toEqual([]);
    expect(searches()).toHaveLength(1);
    expect(wrong).toEqual([]);
    await close();
  });
});
