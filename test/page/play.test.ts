import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { answered, ask, expectAccessible, expectFits, lastAnswer } from "../support/open-page.ts";
import { describePage, openPlayForEach, talker } from "../support/describe-page.ts";
import { event, role, startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";
import { waitMs } from "../support/hang.ts";

const run = promisify(execFile);

describePage("Play", [talker, "demo=models/demo/demo.gguf", "--mmproj", "off", "--threads", "1"], (at) => {
  let page: Page;
  /** The bodies of the requests that the page made. */
  let asked: Record<string, unknown>[];
  openPlayForEach(at, (opened) => ({ page, asked } = opened));

  async function openSection(title: string): Promise<void> {
    await page.locator("#settings summary", { hasText: title }).click();
  }

  test("the bundled model answers each example, and the page asks nobody but its server", async () => {
    await page.getByLabel("Model", { exact: true }).selectOption("demo");
    // Without sampling the answers are the same each time.
    await page.route("**/v1/chat/completions", (route, request) =>
      route.continue({ postData: { ...(request.postDataJSON() as object), temperature: 0 } }),
    );
    const begin = async (title: string): Promise<void> => {
      await page.getByRole("button", { name: title }).click();
      await answered(page, 1);
    };
    const startOver = (): Promise<void> => page.getByRole("link", { name: "New conversation" }).click();
    for (const [title, expected] of [
      ["Just ask", /Paris/],
      ["Answer in JSON", /"name": ?"Maria"/],
      ["Think first", /42/],
    ] as const) {
      await begin(title);
      await expect.poll(() => lastAnswer(page)).toMatch(expected);
      await expect
        .poll(() => page.locator(".facts").textContent())
        .toMatch(/^\d+ tokens · .*first token after .* · \d+ prompt tokens, \d+ cached$/);
      // The thinking of the last one is there, and folded.
      await expect.poll(() => page.locator(".reasoning summary").count()).toBe(title === "Think first" ? 1 : 0);
      await startOver();
    }
    await begin("Compare two answers");
    await expect.poll(() => page.locator(".choice").count()).toBe(2);
    await startOver();
    await begin("See the probability of each token");
    await page.getByText("Point at a token to see its alternatives.").waitFor();
    await expect.poll(() => page.locator(".choice [data-chunk]").count()).toBeGreaterThan(3);
    await startOver();
    await begin("Call a tool");
    await expect.poll(() => page.locator(".call pre").textContent()).toContain('"city": "Lisbon"');
  });

  // The tools of an example stayed in the settings, and went along with every question of later conversations.
  test("what an example sets leaves with its conversation; what was set before is back, and what was changed since stays", async () => {
    await page.getByLabel("System prompt").fill("Be brief.");
    await page.getByRole("button", { name: "Call a tool" }).click();
    await answered(page, 1);
    expect(asked[0]).toMatchObject({ tools: [{ function: { name: "get_weather" } }] });
    // They last as long as the conversation, over a reload, too.
    await page.reload();
    await ask(page, "again");
    expect(asked[1]).toMatchObject({ tools: [{ function: { name: "get_weather" } }] });
    await openSection("Choices");
    await page.getByLabel("Choices side by side").fill("2");
    await page.getByRole("link", { name: "New conversation" }).click();
    await ask(page, "hello");
    expect(asked[2]?.["tools"]).toBeUndefined();
    expect(asked[2]).toMatchObject({ n: 2, messages: [{ role: "system", content: "Be brief." }, { role: "user" }] });
    await expect.poll(() => page.locator("#settings summary", { hasText: "Tools" }).textContent()).toBe("Tools");
  });

  // Words that came between the frame that showed an answer and its subscription were shown only with its next change, if ever.
  test("an answer streams, and stops when told: by the button, and by Escape", async () => {
    for (const stop of [
      () => page.getByRole("button", { name: "Stop" }).click(),
      () => page.keyboard.press("Escape"),
    ]) {
      await page.getByLabel("Your message", { exact: true }).fill("long 100000 50");
      await page.keyboard.press("Enter");
      await page.locator(".answer .said", { hasText: "w3 " }).waitFor();
      await stop();
      await answered(page, 1);
      await expect.poll(() => page.locator(".facts").textContent()).toMatch(/^stopped/);
      await expect.poll(() => lastAnswer(page)).not.toContain("w99999");
      await page.getByRole("link", { name: "New conversation" }).click();
    }
    // The server has heard of it.
    await expect
      .poll(
        async () =>
          ((await (await fetch(`${at.server.url}/health`)).json()) as { requests: { cancelled: number } }).requests,
      )
      .toMatchObject({ cancelled: 2 });
  });

  test("a question is edited and asked again, without what followed its earlier version", async () => {
    await ask(page, "first");
    await ask(page, "second");
    await expect.poll(() => page.locator(".answer").count()).toBe(2);
    await page.getByRole("button", { name: "Edit" }).first().click();
    await page.getByLabel("Your message, edited").fill("other");
    await page.locator(".question").getByRole("button", { name: "Ask again" }).click();
    await answered(page, 1);
    await expect.poll(() => lastAnswer(page)).toBe("You said: other");
    expect(asked.at(-1)?.["messages"]).toEqual([{ role: "user", content: "other" }]);
    await ask(page, "third");
    expect(asked.at(-1)?.["messages"]).toEqual([
      { role: "user", content: "other" },
      { role: "assistant", content: "You said: other" },
      { role: "user", content: "third" },
    ]);
    await page.locator(".answer").first().getByRole("button", { name: "Ask again" }).click();
    await answered(page, 1);
    expect(asked.at(-1)?.["messages"]).toEqual([{ role: "user", content: "other" }]);
  });

  test("under an answer stands why its prompt was read again, and nothing where it was new or known", async () => {
    await page.getByLabel("Model", { exact: true }).selectOption("demo");
    const told = page.locator(".answer .note", { hasText: "Put what changes after what stays the same." });
    for (const [date, misses] of [
      ["2026-11-22", 0],
      ["2026-11-23", 1],
    ] as const) {
      await page.getByLabel("System prompt").fill(`Today is ${date}. You answer in one sentence, in plain words.`);
      await ask(page, "What is the capital of France?");
      await expect.poll(() => told.count()).toBe(misses);
      await page.getByRole("link", { name: "New conversation" }).click();
    }
  });

  test("the system prompt and parameters reach the model, with their notes beside them", async () => {
    await page.getByLabel("System prompt").fill("Be brief.");
    await openSection("Parameters");
    await page.getByLabel("temperature").fill("0.3");
    await page.getByLabel("stop", { exact: true }).fill("END");
    await page.getByLabel("reasoning_effort").selectOption("low");
    await expect.poll(() => page.getByLabel("temperature").getAttribute("max")).toBe("2");
    const seed = page.getByRole("spinbutton", { name: "seed", description: /^The same request gives the same answer/ });
    await seed.waitFor();
    await page.locator("summary", { hasText: "more" }).click();
    await page.getByLabel("Find").fill("xtc");
    await expect
      .poll(() => page.locator(".inner .field code").allTextContents())
      .toEqual(["xtc_probability", "xtc_threshold"]);
    await page.getByLabel("Find").fill("logit_bias");
    await page.getByLabel("logit_bias").fill('{"5": -1}');
    await ask(page, "options");
    await expect
      .poll(async () => JSON.parse(await lastAnswer(page)))
      .toMatchObject({
        roles: ["system", "user"],
        temperature: 0.3,
        reasoning_effort: "low",
        logit_bias: { "5": -1 },
      });
    expect(asked[0]).toMatchObject({ messages: [{ role: "system", content: "Be brief." }, {}], stop: "END" });

    // What cannot be sent is told before it is.
    await page.getByLabel("logit_bias").fill('{"5": ');
    await page.getByLabel("Your message", { exact: true }).fill("options");
    await page.keyboard.press("Enter");
    await page.locator(".banner", { hasText: "logit_bias is no valid JSON" }).waitFor();
    expect(asked.length).toBe(1);
  });

  test("a pasted tool is called, and answered by hand or with its canned result", async () => {
    await openSection("Tools");
    await page.getByRole("button", { name: "Add a tool" }).click();
    const schema = { type: "object", properties: { n: { type: "integer" } } };
    const pasted = JSON.stringify({
      type: "function",
      function: { name: "count", description: "Counts", parameters: schema },
    });
    await page.getByLabel("Parameters, a JSON schema").focus();
    // A headless browser has no clipboard to paste from.
    await page.evaluate(`
      const clipboardData = new DataTransfer();
      clipboardData.setData("text", ${JSON.stringify(pasted)});
      document.activeElement.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    `);
    await expect.poll(() => page.getByLabel("Name", { exact: true }).inputValue()).toBe("count");
    await page.getByLabel("tool_choice").selectOption("required");
    await ask(page, "call count");
    expect(asked[0]).toMatchObject({
      tools: [{ type: "function", function: { name: "count", description: "Counts", parameters: schema } }],
      tool_choice: "required",
    });
    await expect.poll(async () => JSON.parse((await page.locator(".call pre").textContent()) ?? "")).toEqual({ n: 7 });
    await page.getByLabel("What count gives back").fill("seven");
    await page.getByRole("button", { name: "Give the result" }).click();
    await answered(page, 2);
    await expect.poll(() => lastAnswer(page)).toBe("The tool said seven.");
    const { messages } = asked[1] ?? {};
    const [, call, result] = messages as { tool_calls?: { id: string }[]; tool_call_id?: string }[];
    expect(call).toMatchObject({ role: "assistant", content: null, tool_calls: [{ function: { name: "count" } }] });
    expect(result).toEqual({ role: "tool", tool_call_id: call?.tool_calls?.[0]?.id, content: "seven" });

    await page.getByLabel("Canned result").fill("eight");
    await page.getByLabel("Your message", { exact: true }).fill("call count");
    await page.keyboard.press("Enter");
    await answered(page, 4);
    await expect.poll(() => lastAnswer(page)).toBe("The tool said eight.");
  });

  test("an answer is bound to a JSON schema", async () => {
    await openSection("Form of the answer");
    await page.getByLabel("The answer is").selectOption("schema");
    await page.getByLabel("JSON schema", { exact: true }).fill('{"type":"object"');
    await page.getByLabel("Your message", { exact: true }).fill("options");
    await page.keyboard.press("Enter");
    await page.locator(".banner", { hasText: "the schema of the answer is no valid JSON" }).waitFor();
    await page.getByLabel("JSON schema", { exact: true }).fill('{"type":"object"}');
    await ask(page, "options");
    await expect.poll(async () => JSON.parse(await lastAnswer(page))).toMatchObject({ schema: "answer" });
    expect(asked[0]?.["response_format"]).toMatchObject({
      type: "json_schema",
      json_schema: { schema: { type: "object" } },
    });
  });

  test("to a model that takes no images, none is attached", async () => {
    await page.getByLabel("Model", { exact: true }).selectOption("demo");
    await page.evaluate(`
      const clipboardData = new DataTransfer();
      clipboardData.items.add(new File([new Uint8Array(4)], "dot.png", { type: "image/png" }));
      document.querySelector(".composer textarea").dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));
    `);
    await page.locator(".banner", { hasText: "dot.png was not attached: demo takes no images." }).waitFor();
    await expect.poll(() => page.getByAltText("Attached image 1").count()).toBe(0);
  });

  // A file that was chosen was dropped without a word, unless it was an image.
  test("texts and code go along as text, documents as files; of what nobody can read, the page says why", async () => {
    const attach = page.getByLabel("Attach files");
    const file = (name: string, content: string | Buffer, mimeType = ""): object => ({
      name,
      mimeType,
      buffer: Buffer.from(content),
    });
    const pdf = "%PDF-1.4\n%\xe2\xe3";
    await attach.setInputFiles([
      file("main.py", "print('שלום')\n", "text/x-python"),
      file("report.pdf", pdf, "application/pdf"),
      file("data.zip", "PK\x03\x04", "application/zip"),
      file("song.mp3", Buffer.from([0xff, 0xfb, 0x90, 0]), "audio/mpeg"),
      file("empty.txt", ""),
    ] as never);
    const files = page.getByRole("list", { name: "Attached files" });
    await expect.poll(() => files.getByRole("listitem").count()).toBe(2);
    for (const sentence of [
      "data.zip was not attached: it is a packed file; unpack it, and attach what is inside.",
      "song.mp3 was not attached: it is not an image, a PDF, an Office file, or a text in UTF-8.",
      "empty.txt was not attached: it is empty.",
    ])
      await page.locator(".banner", { hasText: sentence }).waitFor();
    await expect.poll(() => page.locator(".talk .banner").count()).toBe(3);
    await expectAccessible(page, "attached files");
    await ask(page, "hello");
    await expect.poll(() => page.locator(".talk .banner").allTextContents()).toEqual([]);
    expect(asked[0]?.["messages"]).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "hello" },
          { type: "text", text: "<file name=\"main.py\">\nprint('שלום')\n\n</file>" },
          {
            type: "file",
            file: {
              filename: "report.pdf",
              file_data: `data:application/pdf;base64,${Buffer.from(pdf).toString("base64")}`,
            },
          },
        ],
      },
    ]);
    await expect.poll(() => page.locator(".question .files li").count()).toBe(2);
    // They are kept, and go along with the next question.
    await page.reload();
    await ask(page, "hello again");
    const [before, after] = asked.map(({ messages }) => messages as readonly object[]);
    expect(after?.[0]).toEqual(before?.[0]);
    // A model of this server reads texts only.
    await page.getByLabel("Model", { exact: true }).selectOption("demo");
    await attach.setInputFiles([file("report.pdf", pdf, "application/pdf"), file("notes.txt", "a note")] as never);
    await page
      .locator(".banner", { hasText: "report.pdf was not attached: demo reads texts, but no PDF or Office files" })
      .waitFor();
    await expect
      .poll(() => page.locator(".composer .files li").allTextContents())
      .toEqual([expect.stringContaining("notes.txt")]);
    await page.getByRole("button", { name: "Remove notes.txt" }).click();
    await expect.poll(() => page.locator(".composer .files").count()).toBe(0);
  });

  test("an image goes along", async () => {
    const png = Buffer.from(
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
      "base64",
    );
    await page.getByLabel("Attach files").setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: png });
    await page.getByAltText("Attached image 1").waitFor();
    await ask(page, "see");
    await expect.poll(() => lastAnswer(page)).toBe("I see 1 image.");
    expect(asked[0]?.["messages"]).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "see" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${png.toString("base64")}` } },
        ],
      },
    ]);
  });

  test("reasoning is folded", async () => {
    await ask(page, "think");
    await expect.poll(() => lastAnswer(page)).toBe("Thought.");
    const reasoning = page.locator(".reasoning .long");
    await expect.poll(() => reasoning.isVisible()).toBe(false);
    await page.locator(".reasoning summary").click();
    await expect.poll(() => reasoning.isVisible()).toBe(true);
    await expect.poll(() => reasoning.textContent()).toBe("Let me see: this is easy.");
  });

  test("the conversation goes on from the choice that is picked", async () => {
    await openSection("Choices");
    await page.getByLabel("Choices side by side").fill("3");
    await ask(page, "hello");
    const boxes = await Promise.all((await page.locator(".choice").all()).map((choice) => choice.boundingBox()));
    expect(boxes).toHaveLength(3);
    for (const [at, box] of boxes.entries()) {
      // Side by side: at one height, each to the right of the one before.
      expect(box?.y).toBe(boxes[0]?.y);
      if (at > 0) expect(box?.x).toBeGreaterThanOrEqual((boxes[at - 1]?.x ?? 0) + (boxes[at - 1]?.width ?? 0));
    }
    await page.getByRole("button", { name: "Choice 2: continue from here" }).click();
    await page.getByRole("button", { name: "Choice 2", pressed: true }).waitFor();
    await page.getByLabel("Choices side by side").fill("1");
    await ask(page, "again");
    expect(asked.map(({ n }) => n)).toEqual([3, undefined]);
  });

  test("the probabilities of a token show on hover, and by the arrow keys", async () => {
    await openSection("Choices");
    await page.getByLabel("Token probabilities").check();
    await ask(page, "odds");
    await expect.poll(() => lastAnswer(page)).toBe("One two three");
    await page.locator("[data-chunk]").nth(1).hover();
    const tip = page.getByRole("tooltip");
    await tip.waitFor();
    await expect.poll(() => tip.locator("li").allTextContents()).toEqual(["␣two25.0 %", "␣ten50.0 %"]);
    await page.keyboard.press("Escape");
    await tip.waitFor({ state: "detached" });
    await page.locator(".tokens").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await tip.waitFor();
    await page.locator("[role=status]", { hasText: "␣two 25.0 %; also ␣ten 50.0 %" }).waitFor({ state: "attached" });
    // A token without text shows with the next one that has text.
    await page.keyboard.press("ArrowRight");
    const both = "(no text) 25.0 %; also ␣ten 50.0 %. ␣three 25.0 %; also ␣ten 50.0 %";
    await page.locator("[role=status]", { hasText: both }).waitFor({ state: "attached" });
  });

  test("what was asked is copied as programs that ask the same", async () => {
    const words = 'It\'s "quoted" \\ and $HOME `here`\nand there: ümlaut';
    await page.getByLabel("System prompt").fill("x");
    await openSection("Parameters");
    await page.locator("summary", { hasText: "more" }).click();
    await page.getByLabel("top_k").fill("5");
    await ask(page, words);
    await page.getByRole("button", { name: "Copy as…" }).click();
    const code = async (language: string): Promise<string> => {
      await page.getByLabel(language, { exact: true }).check();
      return (await page.locator("dialog pre").textContent()) ?? "";
    };
    const { stdout } = await run("sh", ["-c", `${await code("curl")} -s`]);
    const said = stdout
      .split("\n")
      .filter((line) => line.startsWith("data: {"))
      .map((line) => JSON.parse(line.slice("data: ".length)) as { choices: { delta: { content?: string } }[] })
      .map(({ choices }) => choices[0]?.delta.content ?? "");
    expect(said.join("")).toBe(`You said: ${words}`);
    const node = await run(process.execPath, ["--input-type=module", "-e", await code("Node")], { cwd: resolve(".") });
    expect(node.stdout).toBe(`You said: ${words}`);
    const python = await code("Python");
    expect(python).toContain('extra_body={\n        "top_k": 5,\n    }');
    expect(python).not.toMatch(/\b(true|null)\b/);
    const hasPython = await run("python3", ["-c", "import openai"]).then(
      () => true,
      () => false,
    );
    if (hasPython) expect((await run("python3", ["-c", python])).stdout).toBe(`You said: ${words}`);
    await page.getByRole("button", { name: "Close" }).click();
  });

  test("a refusal shows the server's words, its code and the request's id", async () => {
    await ask(page, "fail");
    const banner = page.locator(".answer .banner");
    await expect.poll(() => banner.textContent()).toMatch(/422.*The talker will not\..*no_talk · messages · req_/);
  });
});

let upstream: ScriptedServer | undefined;
afterAll(() => upstream?.close());

/** An upstream whose answer depends on the last message. */
async function badUpstream(): Promise<string[]> {
  upstream = await startScripted((response, { messages }) => {
    const content = (messages as { content?: unknown }[]).at(-1)?.content;
    if (content === "limit") {
      response.writeHead(429, { "retry-after": "700" });
      response.end('{"error":{"message":"Too many tokens.","type":"tokens","code":"rate_limit_exceeded"}}');
      return;
    }
    if (content === "fail") {
      response.writeHead(500).end('{"error":{"message":"Out of memory.","type":"server_error"}}');
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (content === "break") {
      response.write(`${role}${event({ content: "Hel" })}`, () => response.destroy());
      return;
    }
    const text = content === "empty" ? "" : event({ content: `const line = "${"x".repeat(900)}";\n` });
    response.end(`${role}${text}${event({}, "stop")}data: [DONE]\n\n`);
  });
  return [talker, upstream.url];
}

describePage("Play with a bad upstream", badUpstream, (at) => {
  // The page asks for the list of models once.
  beforeAll(async () => {
    const list = async (): Promise<string> => (await fetch(`${at.server.url}/v1/models`)).text();
    await vi.waitFor(async () => expect(await list()).toContain('"id":"m"'), { timeout: waitMs });
  });

  // Each of them was "The server refused", and nobody learned when to try again.
  test("a failure says what happened: too many requests, a failed server, an answer that broke off", async () => {
    const { page, wrong, close } = await at.open();
    await page.getByLabel("Model", { exact: true }).selectOption("m");
    for (const [question, expected] of [
      ["limit", /^Too many requests: 429.*Too many tokens\..*Try again in 12 minutes\./],
      ["fail", /^The server failed: 50\d/],
      ["break", /^The answer broke off/],
    ] as const) {
      await ask(page, question);
      await expect.poll(() => page.locator(".answer").last().locator(".banner").textContent()).toMatch(expected);
    }
    expect(wrong).toEqual([]);
    await close();
  });

  // Nothing was below the name of the model, as if the page had lost the answer.
  test("an empty answer is named", async () => {
    const { page, wrong, close } = await at.open();
    await page.getByLabel("Model", { exact: true }).selectOption("m");
    await ask(page, "empty");
    await page.locator(".answer").getByText("The answer is empty.").waitFor();
    await ask(page, "code");
    await expect.poll(() => page.locator(".answer").last().getByText("The answer is empty.").count()).toBe(0);
    expect(wrong).toEqual([]);
    await close();
  });

  // One long line made the column of the answer wider than the phone.
  test("on a phone, a long line of code wraps, and asking shows the answer in place of the settings", async () => {
    const { page, wrong, close } = await at.open("play", { viewport: { width: 390, height: 800 } });
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByLabel("Model", { exact: true }).selectOption("m");
    await ask(page, "code");
    await expect.poll(() => page.locator(".answer .said").isVisible()).toBe(true);
    await expect.poll(() => page.locator("#settings").isVisible()).toBe(false);
    await expectFits(page, "a long line of code");
    const width = (selector: string): Promise<number> =>
      page.locator(selector).evaluate((element: { readonly scrollWidth: number }) => element.scrollWidth);
    await expect.poll(() => width(".scroller")).toBeLessThanOrEqual(390);
    expect(wrong).toEqual([]);
    await close();
  });

  // After scrolling up, the question and its answer appeared below the window.
  test("asking scrolls to the new message; scrolling up while the answer grows stays", async () => {
    const { page, wrong, close } = await at.open();
    await page.getByLabel("Model", { exact: true }).selectOption("talker");
    await ask(page, "long 3000");
    const scroller = page.locator(".scroller");
    await scroller.evaluate((element: { scrollTop: number }) => (element.scrollTop = 0));
    await ask(page, "a new question");
    const shown = page.locator(".answer").last().locator(".said");
    const isInView = async (): Promise<boolean> => {
      const [box, view] = [await shown.boundingBox(), await scroller.boundingBox()];
      return box !== null && view !== null && box.y >= view.y && box.y + box.height <= view.y + view.height;
    };
    await expect.poll(isInView).toBe(true);
    await page.getByLabel("Your message", { exact: true }).fill("long 100000 200");
    await page.keyboard.press("Enter");
    // The first answer contains the same words.
    await expect.poll(() => shown.textContent()).toContain("w30 ");
    await scroller.evaluate((element: { scrollTop: number }) => (element.scrollTop = 0));
    const grown = await shown.textContent();
    await expect.poll(() => shown.textContent()).not.toBe(grown);
    expect(await scroller.evaluate((element: { readonly scrollTop: number }) => element.scrollTop)).toBe(0);
    expect(wrong).toEqual([]);
    await close();
  });
});
