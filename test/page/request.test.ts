import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import type { Locator, Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { describePage, looksOf, pageSize, talker } from "../support/describe-page.ts";
import type { PageUnderTest } from "../support/describe-page.ts";
import { expectAccessible, expectFits } from "../support/open-page.ts";
import { chat } from "../support/transports.ts";

const key = "sk-page-0123456789";
const adminKey = "admin-0123456789abcdef";
const image =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

function rows(page: Page): Locator {
  return page.locator(".request-row");
}

function tab(page: Page, name: string): Locator {
  return page.getByRole("tab", { name, exact: true });
}

/** The JSON of an admin path. */
async function admin(at: PageUnderTest, path: string): Promise<unknown> {
  return (await fetch(`${at.server.url}/admin/${path}`)).json();
}

interface Kept {
  readonly id: string;
  readonly request: { readonly headers: readonly (readonly string[])[]; readonly body?: { readonly text: string } };
}

/** Everything that is kept of the newest request. */
async function newest(at: PageUnderTest): Promise<Kept> {
  const { requests } = (await admin(at, "requests")) as { readonly requests: readonly { readonly id: string }[] };
  return (await admin(at, `requests/${requests.at(-1)?.id}`)) as Kept;
}

/** Opens the newest request by its address. */
async function chooseNewest(at: PageUnderTest, page: Page): Promise<void> {
  const { id } = await newest(at);
  await page.evaluate(`location.hash = "#inspect/${id}"`);
  await page.getByRole("article", { name: `Request ${id}` }).waitFor();
}

/** Everything that the page has put into the clipboard. */
async function withClipboard(page: Page): Promise<() => Promise<string>> {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  return () => page.evaluate("navigator.clipboard.readText()") as Promise<string>;
}

const system = "Today is 2026-01-01. You help people who know little of foxes, and say what there is to say of them.";
const longText = `Begin. ${"A long text about foxes, line by line.\n".repeat(400)}The end.`;
const call = { id: "call_1", type: "function", function: { name: "look", arguments: '{"place":{"den":7}}' } };
const tools = [
  {
    type: "function",
    function: {
      name: "look",
      description: "Looks at a place.",
      parameters: { type: "object", properties: { place: { type: "object" } } },
    },
  },
];
const conversation = [
  { role: "system", content: system },
  {
    role: "user",
    content: [
      { type: "text", text: longText },
      { type: "image_url", image_url: { url: image } },
      { type: "image_url", image_url: { url: "https://images.example/fox.png" } },
    ],
  },
  { role: "assistant", content: null, reasoning_content: "The den first.", tool_calls: [call] },
  { role: "tool", tool_call_id: "call_1", content: "seven foxes" },
];

describePage("one request", [talker], (at) => {
  const asked = async (more: object, path = "chat/completions"): Promise<void> => {
    await (await fetch(`${at.server.url}/v1/${path}`, chat("", { model: "talker", ...more }))).text();
  };

  test("is shown as people read it: messages, calls with their results, images, tools, parameters", async () => {
    await asked({ messages: conversation, tools, temperature: 0.5, stream: true, seed: 7 });
    const { page, wrong, close } = await at.open("inspect");
    await chooseNewest(at, page);
    const messages = page.getByRole("region", { name: "Messages" });
    await expect
      .poll(() => messages.locator(".message > header h4").allTextContents())
      .toEqual(["system", "user", "assistant"]);
    await messages.getByText(system).waitFor();
    // A long text is folded.
    const user = messages.locator(".from-user");
    await expect.poll(() => user.textContent()).not.toContain("The end.");
    await user.getByRole("button", { name: `Show all ${longText.length.toLocaleString("en")} characters` }).click();
    await expect.poll(() => user.textContent()).toContain("The end.");
    // The image of the request itself is shown, the other one is not even asked for (`wrong` would have it).
    await expect.poll(() => user.locator("img").count()).toBe(1);
    await expect.poll(() => user.locator("img").getAttribute("src")).toBe(image);
    await user.getByText("https://images.example/fox.png").waitFor();
    // The result stands at its call, and the reasoning is folded.
    const called = messages.getByRole("region", { name: "Call of look" });
    await called.getByText("seven foxes").waitFor();
    await called.getByRole("treeitem", { name: "den: 7" }).waitFor();
    const reasoning = messages.locator("details.reasoning");
    await expect.poll(() => reasoning.getByText("The den first.").isVisible()).toBe(false);
    await reasoning.locator("summary").click();
    await reasoning.getByText("The den first.").waitFor();
    await page.locator(".tool-list > summary").click();
    await page.locator(".one-tool > summary", { hasText: "Looks at a place." }).click();
    await page.getByRole("tree", { name: "Parameters of look" }).getByText("properties").waitFor();
    await page.getByRole("row", { name: "temperature 0.5" }).waitFor();
    const answer = page.getByRole("region", { name: "Answer" });
    await answer.getByText("The tool said seven foxes.").waitFor();
    await answer.getByText("finish reason stop").waitFor();
    await answer.getByRole("row", { name: "Form streamed" }).waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  test("of each API is read: completions, Responses, Messages, Ollama's, texts to embed, tokens to count", async () => {
    const { page, wrong, close } = await at.open("inspect");
    const shows = async (path: string, body: object, texts: readonly string[]): Promise<void> => {
      const init = chat("", { model: "talker", messages: undefined, ...body });
      await (await fetch(`${at.server.url}${path}`, init)).text();
      await chooseNewest(at, page);
      for (const text of texts) await page.locator(".readable").getByText(text).first().waitFor();
    };
    const messages = [{ role: "user", content: "hello fox" }];
    await shows("/v1/completions", { prompt: "a completed fox" }, ["a completed fox", "You said"]);
    await shows("/v1/responses", { input: "hello respondent", instructions: "Be red." }, [
      "hello respondent",
      "Be red.",
      "You said: hello respondent",
    ]);
    await shows("/v1/messages", { messages, system: "Be Anthropic's.", max_tokens: 10 }, [
      "Be Anthropic's.",
      "You said: hello fox",
    ]);
    await shows("/api/chat", { messages, stream: false }, ["hello fox", "You said: hello fox"]);
    await shows("/v1/embeddings", { input: ["one fox", "two foxes"] }, ["input[1]", "two foxes"]);
    // These two the server did not read as requests for an answer: the page does, with the reader of the API.
    await shows("/v1/messages/count_tokens", { messages, system: "Be counted." }, ["Be counted.", "input_tokens"]);
    await shows("/v1/chat/completions", { messages, model: "nope" }, ["hello fox", "error"]);
    // What the API refuses is shown as JSON, at the place that the error names.
    await shows("/v1/chat/completions", { messages: [...messages, { role: "robot", content: "hi" }] }, [
      "refused for messages[1].role",
    ]);
    await page.locator("[role=treeitem][aria-selected=true]", { hasText: 'role: "robot"' }).waitFor();
    await shows("/v1/messages", { messages: [{ role: "robot", content: "hi" }], max_tokens: 5 }, [
      "refused for messages.0.role",
    ]);
    await page.locator("[role=treeitem][aria-selected=true]", { hasText: 'role: "robot"' }).waitFor();
    await shows("/api/chat", { messages: [{ role: 5, content: "hi" }] }, ["refused for messages[0].role"]);
    expect(wrong).toEqual([]);
    await close();
  });

  test("changes since the previous turn: messages, tools, parameters, and what they cost the cache", async () => {
    const { page, wrong, close } = await at.open("inspect");
    const first = [
      { role: "system", content: system },
      { role: "user", content: "Which foxes are there?" },
    ];
    const second = [...first, { role: "assistant", content: "Red ones." }, { role: "user", content: "No others?" }];
    await asked({ messages: first, tools, temperature: 0.5 });
    await asked({ messages: second, tools, temperature: 0.7 });
    await chooseNewest(at, page);
    await tab(page, "Changes").click();
    await page.getByText("The earlier prompt is the beginning of this one").waitFor();
    await page
      .getByLabel("Compared with")
      .locator("option:checked", { hasText: /^turn 1/ })
      .waitFor({ state: "attached" });
    await expect
      .poll(() => page.getByLabel("Summary of the changes").locator(".chip").allTextContents())
      .toEqual(["2 messages added", "1 parameter changed"]);
    const parameters = page.getByRole("region", { name: "Changes of parameters" });
    await expect.poll(() => parameters.locator("del, ins").allTextContents()).toEqual(["0.5", "0.7"]);
    await page.locator("summary", { hasText: "2 unchanged messages" }).click();
    const messages = page.getByRole("region", { name: "Changes of messages" });
    await messages.getByText("Which foxes are there?", { exact: true }).waitFor();
    // A system prompt with another date does not begin another conversation.
    const changed = [{ role: "system", content: system.replace("01-01", "01-02") }, ...second.slice(1)];
    await asked({ messages: changed, tools: [], temperature: 0.7 });
    await chooseNewest(at, page);
    await page.getByText("1 message changed").waitFor();
    await page.getByText("1 tool removed").waitFor();
    await page.getByText("A tool is gone (tools).").waitFor();
    const message = messages.locator(".change.changed");
    await expect.poll(() => message.locator("del").allTextContents()).toEqual(["01"]);
    await expect.poll(() => message.locator("ins").allTextContents()).toEqual(["02"]);
    await asked({
      messages: [{ ...changed[0], content: system.replace("01-01", "01-03") }, ...changed.slice(1)],
      tools: [],
    });
    await chooseNewest(at, page);
    await page.getByText("A date or time changed in messages[0].").waitFor();
    await page.getByText("No message before the first difference is the same.").waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  test("as JSON is a tree that needs no pointer, with a search in what is folded, and copies", async () => {
    await asked({ messages: conversation, tools, seed: 7 });
    const { page, wrong, close } = await at.open("inspect");
    const clipboard = await withClipboard(page);
    await chooseNewest(at, page);
    await tab(page, "JSON").click();
    const tree = page.getByRole("tree", { name: "The request's body" });
    await tree.focus();
    const selected = (): Promise<string | null> => tree.locator("[aria-selected=true]").textContent();
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => selected()).toContain("model");
    // A letter goes to the next name that begins with it.
    await page.keyboard.press("m");
    await expect.poll(selected).toBe("messages: [4 items]");
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => tree.locator("[aria-selected=true]").getAttribute("aria-expanded")).toBe("true");
    await page.keyboard.press("ArrowRight");
    await expect.poll(selected).toContain("role: system");
    await expect.poll(() => tree.locator("[aria-selected=true]").getAttribute("aria-level")).toBe("3");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => tree.locator("[aria-selected=true]").getAttribute("aria-expanded")).toBe("false");
    await page.keyboard.press("End");
    await expect
      .poll(async () => {
        const active = await tree.getAttribute("aria-activedescendant");
        return active === (await tree.locator("[aria-selected=true]").getAttribute("id"));
      })
      .toBe(true);
    // What is folded is found.
    const search = page.getByLabel("Search names and values");
    await search.fill("FOXES");
    await page.locator(".search-bar [role=status]", { hasText: /^3$/ }).waitFor();
    await search.press("Enter");
    await search.press("Enter");
    await search.press("Enter");
    await page.locator(".search-bar [role=status]", { hasText: "3 of 3" }).waitFor();
    await expect.poll(selected).toBe('content: "seven foxes"');
    await search.press("Shift+Enter");
    await page.locator(".search-bar [role=status]", { hasText: "2 of 3" }).waitFor();
    await expect.poll(() => page.locator(".json-path").textContent()).toBe("messages[1].content[0].text");
    await page.getByRole("button", { name: "Copy path" }).click();
    await expect.poll(clipboard).toBe("messages[1].content[0].text");
    await page.getByRole("button", { name: "Copy value" }).click();
    await expect.poll(clipboard).toBe(longText);
    // A long text opens in lines.
    await tree.focus();
    await page.keyboard.press("ArrowRight");
    await tree.locator(".json-line", { hasText: "A long text about foxes" }).first().waitFor();
    await page.getByRole("button", { name: "Close all" }).click();
    await expect.poll(() => tree.locator("[role=treeitem]").count()).toBe(5);
    await page.locator(".tab-panel select").selectOption("1");
    await page.getByRole("tree", { name: "The answer" }).getByText("choices").waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  // A number with more digits than JavaScript keeps was shown as an object, and a long line was copied with line ends that it has not.
  test("large numbers stay as they were written; a long text is searched, and copied as it is", async () => {
    const bodyWith = (big: string): string =>
      `{"model":"talker","big":${big},"messages":[{"role":"user","content":"${"foxes in a line, ".repeat(800)}and a needle"}]}`;
    const bodies = ["12345678901234567891", "12345678901234567892"].map(bodyWith);
    const headers = { "content-type": "application/json" };
    for (const body of bodies)
      await (await fetch(`${at.server.url}/v1/chat/completions`, { method: "POST", headers, body })).text();
    const { page, wrong, close } = await at.open("inspect");
    const clipboard = await withClipboard(page);
    await chooseNewest(at, page);
    await tab(page, "Changes").click();
    const parameters = page.getByRole("region", { name: "Changes of parameters" });
    await expect
      .poll(() => parameters.locator("del, ins").allTextContents())
      .toEqual(["12345678901234567891", "12345678901234567892"]);
    await tab(page, "Request").click();
    const search = page.getByLabel("Search in the body as it came");
    await search.fill("NEEDLE");
    await page.locator(".search-bar [role=status]", { hasText: /^1$/ }).first().waitFor();
    const body = page.getByRole("region", { name: "The body as it came" });
    const scrolled = (): Promise<number> => body.evaluate((box: { readonly scrollTop: number }) => box.scrollTop);
    expect(await scrolled()).toBe(0);
    await search.press("Enter");
    await expect.poll(scrolled).toBeGreaterThan(0);
    await body.focus();
    await page.evaluate(`getSelection().selectAllChildren(document.activeElement)`);
    await page.keyboard.press("ControlOrMeta+c");
    await expect.poll(clipboard).toBe(bodies[1]);
    expect(wrong).toEqual([]);
    await close();
  });

  test("is sent again, edited or not, and the new one is selected", async () => {
    await asked({ messages: [{ role: "user", content: "once more" }], stream: true });
    const before = await newest(at);
    const { page, wrong, close } = await at.open("inspect");
    await chooseNewest(at, page);
    await page.getByRole("button", { name: "Resend", exact: true }).click();
    await expect.poll(async () => (await newest(at)).id).not.toBe(before.id);
    const again = await newest(at);
    expect(again.request.body).toEqual(before.request.body);
    await expect.poll(() => page.evaluate("location.hash")).toBe(`#inspect/${again.id}/overview`);
    await page.getByRole("region", { name: "Answer" }).getByText("You said: once more").waitFor();
    await page.goBack();
    await page.getByRole("article", { name: `Request ${before.id}` }).waitFor();
    await page.getByRole("button", { name: "Edit and resend" }).click();
    const dialog = page.getByRole("dialog", { name: /^Edit and resend POST/ });
    const body = dialog.getByLabel("Body");
    const text = await body.inputValue();
    await body.fill(text.replace(/\}\s*$/, ",}"));
    const lines = text.split("\n").length;
    await dialog.getByText(new RegExp(`^The body is not JSON: line ${lines}, column \\d+: expected a name`)).waitFor();
    await dialog.getByRole("button", { name: "Send" }).click({ force: true });
    await expect.poll(() => dialog.isVisible()).toBe(true);
    await expectAccessible(page, "a body that is edited");
    await body.fill(text.replace("once more", "something else"));
    await dialog.getByRole("button", { name: "Send" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("region", { name: "Answer" }).getByText("You said: something else").waitFor();
    expect((await newest(at)).request.body?.text).toContain("something else");
    expect(wrong).toEqual([]);
    await close();
  });

  test("an answer to what was sent again can be stopped", async () => {
    const { page, wrong, close } = await at.open("inspect");
    const leaving = new AbortController();
    const going = fetch(`${at.server.url}/v1/chat/completions`, {
      ...chat("long 100000 50", { model: "talker", stream: true }),
      signal: leaving.signal,
    }).then((response) => response.text());
    await rows(page).filter({ hasText: "long 100000" }).first().click();
    await page.getByRole("region", { name: "Answer" }).getByText("w3").waitFor();
    leaving.abort();
    await going.catch(() => {});
    await page.locator(".inspected .chip", { hasText: "cancelled" }).waitFor();
    await page.getByRole("button", { name: "Resend", exact: true }).click();
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.locator(".inspected .chip", { hasText: "cancelled" }).waitFor();
    await expect.poll(() => admin(at, "requests?outcome=open")).toMatchObject({ requests: [] });
    expect(wrong).toEqual([]);
    await close();
  });

  test("says why it cannot be sent again or edited", async () => {
    await fetch(`${at.server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "no JSON",
    });
    const { page, wrong, close } = await at.open("inspect");
    await chooseNewest(at, page);
    await page.getByText("This request cannot be edited. Its body is not JSON.").waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Edit and resend" }).isDisabled()).toBe(true);
    const { WebSocket } = await import("ws");
    const socket = new WebSocket(`${at.server.url.replace("http", "ws")}/v1/responses`);
    await new Promise((resolve) => socket.on("open", resolve));
    const ended = new Promise<void>((resolve) => {
      socket.on("message", (data) => String(data).includes("response.completed") && resolve());
    });
    socket.send(JSON.stringify({ type: "response.create", model: "talker", input: "by socket" }));
    await ended;
    socket.close();
    await rows(page).filter({ hasText: "by socket" }).first().click();
    await page.getByText("It came as a message of a WebSocket").waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Resend", exact: true }).isDisabled()).toBe(true);
    await expect.poll(() => page.getByRole("button", { name: "Copy as curl" }).count()).toBe(0);
    expect(wrong).toEqual([]);
    await close();
  });

  test("where the server says where a program failed, its stack is folded above the request", async () => {
    await asked({ messages: [{ role: "user", content: "fail" }] });
    const { page, wrong, close } = await at.open("inspect");
    await page.route(/admin\/requests\/req_\w+$/, async (route) => {
      const answer = await route.fetch();
      const kept = (await answer.json()) as object;
      await route.fulfill({ response: answer, json: { ...kept, stack: "Error\n    at fox (program.js:7:9)" } });
    });
    await chooseNewest(at, page);
    await expect.poll(() => page.getByText("at fox (program.js:7:9)").isVisible()).toBe(false);
    await page.getByText("Where the exception was thrown").click();
    await page.getByText("at fox (program.js:7:9)").waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  test("the address keeps the request and its tab", async () => {
    await asked({ messages: [{ role: "user", content: "kept in the address" }] });
    const { page, wrong, close } = await at.open("inspect");
    await chooseNewest(at, page);
    await tab(page, "JSON").click();
    await expect.poll(() => page.evaluate("location.hash")).toMatch(/^#inspect\/req_\w+\/json$/);
    await page.reload();
    await page.locator("[role=tab][aria-selected=true]", { hasText: "JSON" }).waitFor();
    await page.getByRole("tree", { name: "The request's body" }).waitFor();
    // Another request and a filter keep the tab.
    const chosen = await page.evaluate("location.hash");
    await asked({ messages: [{ role: "user", content: "the next one" }] });
    await rows(page).filter({ hasText: "the next one" }).click();
    await expect.poll(() => page.evaluate("location.hash")).toMatch(/^#inspect\/req_\w+\/json$/);
    await expect.poll(() => page.evaluate("location.hash")).not.toBe(chosen);
    await page.getByLabel("How they ended").selectOption("finished");
    await expect.poll(() => page.evaluate("location.hash")).toMatch(/^#inspect\/req_\w+\/json\?outcome=finished$/);
    expect(wrong).toEqual([]);
    await close();
  });

  test.each(looksOf(10))("axe finds nothing: %s", async (_, options) => {
    const { page, wrong, close } = await at.open("inspect", options);
    await asked({ messages: conversation, tools, temperature: 0.5, n: 2 });
    await asked({ messages: [...conversation, { role: "user", content: "call look" }], tools: [], temperature: 0.7 });
    await chooseNewest(at, page);
    await page.getByRole("region", { name: "Answer" }).locator(".message").first().waitFor();
    for (const summary of [".parameters > summary", "details.reasoning > summary"])
      await page.locator(summary).first().click();
    await expectAccessible(page, "an overview");
    await tab(page, "Changes").click();
    await page.getByRole("region", { name: "Changes of messages" }).waitFor();
    await page.locator("details.change > summary").first().click();
    await expectAccessible(page, "changes");
    await tab(page, "JSON").click();
    await page.getByRole("button", { name: "Open all" }).click();
    await page.getByLabel("Search names and values").fill("fox");
    await page.getByLabel("Search names and values").press("Enter");
    await expectAccessible(page, "a tree");
    await tab(page, "Request").click();
    await page.getByLabel("Search in the body as it came").fill("fox");
    await expectAccessible(page, "a search in a text");
    await expectFits(page, "at the end");
    expect(wrong).toEqual([]);
    await close();
  });
});

describePage(
  "a request that is copied as curl",
  [talker, "--api-key", key, "--admin-key", adminKey, "--inspect"],
  (at) => {
    const bodies = {
      short: { model: "talker", messages: [{ role: "user", content: `It's "quoted"\\ $HOME \`id\` !x\n\ttab é😀` }] },
      "longer than an argument": { model: "talker", messages: [{ role: "user", content: "it's é ".repeat(40_000) }] },
    };
    test.each(Object.entries(bodies))("gives the same body when bash runs it: %s", async (_, body) => {
      const { page, wrong, close } = await at.open("inspect");
      const clipboard = await withClipboard(page);
      await page.getByLabel("API key").fill(key);
      await page.getByRole("button", { name: "Use this key" }).click();
      await page.getByLabel("Admin key").fill(adminKey);
      await page.getByRole("button", { name: "Look at the requests" }).click();
      const text = JSON.stringify(body, null, 1);
      const headers = { "content-type": "application/json", authorization: `Bearer ${key}` };
      const url = `${at.server.url}/v1/chat/completions`;
      const response = await fetch(url, { method: "POST", headers, body: text });
      const answer = (await response.json()) as { readonly choices: readonly unknown[] };
      // The first row may still be a request of the test before.
      await page.locator(`#row-${response.headers.get("x-request-id")}`).click();
      // The clipboard may still have the command of the test before.
      await page.evaluate("navigator.clipboard.writeText('')");
      await page.getByRole("button", { name: "Copy as curl" }).click();
      await expect.poll(clipboard).toMatch(/curl/);
      const command = await clipboard();
      expect(command).not.toContain(key);
      expect(command).toContain("$TRUEWIRE_API_KEY");
      const run = promisify(execFile)("bash", ["--norc", "-s"], { env: { ...process.env, TRUEWIRE_API_KEY: key } });
      run.child.stdin?.end(command);
      expect(JSON.parse((await run).stdout)).toMatchObject({ choices: answer.choices });
      const list = async (path: string): Promise<unknown> =>
        (await fetch(`${at.server.url}/admin/${path}`, { headers: { authorization: `Bearer ${adminKey}` } })).json();
      const { requests } = (await list("requests")) as { readonly requests: readonly { readonly id: string }[] };
      const kept = (await list(`requests/${requests.at(-1)?.id}`)) as Kept;
      expect(kept.request.headers.find(([name]) => name === "user-agent")?.[1]).toBeDefined();
      expect(kept.request.body?.text).toBe(text);
      expect(wrong).toEqual([]);
      await close();
    });
  },
);

const captures = "../shared/client-captures/claude-code-2.1.330.jsonl";
const hasCaptures = existsSync(captures);
if (!hasCaptures) console.log(`skipped: ${captures} is not there, with what Claude Code sends`);

interface CapturedRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { readonly messages: readonly { readonly role: string; readonly content: unknown }[] };
}

describePage("a session of Claude Code", [talker], (at) => {
  const turns = 9;
  beforeAll(async () => {
    if (!hasCaptures) return;
    const [first, second] = readFileSync(captures, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as CapturedRequest);
    if (!first || !second) throw new Error(`expected two requests in ${captures}`);
    const { host: _, connection: __, "content-length": ___, "accept-encoding": ____, ...headers } = first.headers;
    // The session goes on as the client's second request does: a call and its result with each turn.
    const round = second.body.messages.slice(first.body.messages.length);
    const more = (turn: number): unknown[] =>
      JSON.parse(
        JSON.stringify(round)
          .replaceAll(/"(toolu_\w+)"/g, `"$1_${turn}"`)
          .replaceAll("echo hi", `echo ${turn}`),
      ) as unknown[];
    const messages: unknown[] = [...first.body.messages];
    for (let turn = 1; turn <= turns; turn++) {
      if (turn > 1) messages.push(...more(turn));
      const body = JSON.stringify({ ...first.body, model: "talker", messages });
      const answer = await fetch(`${at.server.url}${first.url}`, { method: "POST", headers, body });
      expect([answer.status, (await answer.text()).slice(0, 200)]).toEqual([200, expect.anything()]);
    }
  });

  test.skipIf(!hasCaptures)("what it sent in turn 7 is read after 3 clicks", async () => {
    const { page, wrong, close } = await at.open("play");
    let clicks = 0;
    const click = async (target: Locator): Promise<void> => {
      await target.click();
      clicks++;
    };
    await click(page.getByRole("link", { name: "Inspect" }));
    await click(rows(page).filter({ hasText: `${turns} turns` }));
    await click(rows(page).filter({ hasText: "turn 7" }));
    const messages = page.getByRole("region", { name: "Messages" });
    await messages.getByText("run echo hi").first().waitFor();
    // The call of the turn with its result, as the client sent them.
    const call = messages.getByRole("region", { name: "Call of Bash" }).last();
    await call.getByText("echo 7").waitFor();
    await call.getByText("Result").waitFor();
    console.log(`read what Claude Code sent in turn 7: ${clicks} clicks`);
    expect(clicks).toBeLessThanOrEqual(3);
    // One more click shows what was new in it, and nothing else.
    await tab(page, "Changes").click();
    await page.getByText("The earlier prompt is the beginning of this one").waitFor();
    await page
      .getByLabel("Compared with")
      .locator("option:checked", { hasText: /^turn 6/ })
      .waitFor({ state: "attached" });
    await expect.poll(() => page.locator(".change").count()).toBe(2);
    expect(wrong).toEqual([]);
    await close();
  });
});

describePage("a body of many megabytes", [talker, "--inspect-size", "1GiB"], (at) => {
  test("is a tree that is searched while the page stays alive", async () => {
    const fox = { name: "a fox", colours: ["red", "grey"], age: 7 };
    const count = 90_000 * pageSize;
    const documents = Array.from({ length: count }, (_, number) => ({ ...fox, number }));
    const body = JSON.stringify({ model: "nope", messages: [{ role: "user", content: "hi" }], documents });
    expect(body.length).toBeGreaterThan(60 * count);
    await fetch(`${at.server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    const { page, wrong, close } = await at.open("inspect");
    await rows(page).first().click();
    await page.getByRole("tree", { name: "The body" }).waitFor();
    await tab(page, "JSON").click();
    const tree = page.getByRole("tree", { name: "The request's body" });
    await tree.getByText(`documents: [${count.toLocaleString("en")} items]`).click();
    await page.getByLabel("Search names and values").fill(`${count - 1}`);
    await page.locator(".search-bar [role=status]", { hasText: /^1$/ }).waitFor();
    await page.getByLabel("Search names and values").press("Enter");
    await expect.poll(() => tree.locator("[aria-selected=true]").textContent()).toBe(`number: ${count - 1}`);
    // Only rows in sight are there.
    await expect.poll(() => tree.locator("[role=treeitem]").count()).toBeLessThan(100);
    expect(wrong).toEqual([]);
    await close();
  });
});
