import { expect, test } from "vitest";
import { judgeCapture } from "../../src/rules.ts";
import { expectAccessible } from "../support/open-page.ts";
import { describePage, pageSize, talker } from "../support/describe-page.ts";
import { runTruewire } from "../support/serve.ts";

/** No space after the colon, the role twice, a foreign finish reason, no end mark. */
const broken = `data:{"id":"a","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"},"finish_reason":null}]}

data:{"id":"a","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"lo"},"finish_reason":"eos"}]}

`;

/** Counts the frames that are drawn while a capture is being judged. */
const countFrames = `
  globalThis.framesWhileJudging = 0;
  const nextFrame = () => {
    if (document.querySelector(".judged")) return;
    if (document.body.textContent.includes("Judging long.sse…")) framesWhileJudging++;
    requestAnimationFrame(nextFrame);
  };
  requestAnimationFrame(nextFrame);
`;

describePage("Judge", [talker], (at) => {
  test("a capture is judged as by the rules elsewhere, its places marked, and repaired", async () => {
    const { page, wrong, close } = await at.open("check");
    await expectAccessible(page, "nothing judged");
    const requests: string[] = [];
    page.on("request", (request) => requests.push(new URL(request.url()).pathname));
    await page
      .locator(".judging input[type=file]")
      .setInputFiles({ name: "b.sse", mimeType: "", buffer: Buffer.from(broken) });
    const article = page.locator(".judged", { hasText: "b.sse" });
    await article.waitFor();
    const expected = [...new Set(judgeCapture("b.sse", broken).findings.map(({ rule }) => rule))];
    expect(expected.length).toBeGreaterThan(3);
    await expect
      .poll(async () => (await article.locator(".findings code").allTextContents()).toSorted())
      .toEqual(expected.toSorted());
    await expect.poll(() => article.locator(".captured").textContent()).toContain('"content":"Hel"');
    // A place within another is marked by itself, and the text around it stays what it was.
    await expect.poll(() => article.locator(".captured mark.error").allTextContents()).toEqual(['"finish_reason"']);
    await expect.poll(async () => (await article.locator(".captured").textContent())?.replaceAll("▮", "")).toBe(broken);
    await expect
      .poll(() => article.locator(".repairs").textContent())
      .toContain('The space after "data:" was missing.');
    await article.locator(".findings button").first().click();
    await expect.poll(() => page.evaluate("document.activeElement.classList.contains('captured')")).toBe(true);
    await expectAccessible(page, "a broken capture");
    // The capture stays where it is: nothing was asked but the rules' own script.
    expect(requests.every((path) => /^\/page\/[\w-]+\.js$/.test(path))).toBe(true);
    expect(wrong).toEqual([]);
    await close();
  });

  test("what this server says, printed by curl -v and dropped, has nothing against it", async () => {
    const { execFile } = await import("node:child_process");
    const body = JSON.stringify({ model: "talker", stream: true, messages: [{ role: "user", content: "think" }] });
    const args = [
      "-v",
      "-N",
      `${at.server.url}/v1/chat/completions`,
      "-H",
      "content-type: application/json",
      "-d",
      body,
    ];
    const printed = await new Promise<string>((resolve, reject) =>
      execFile("sh", ["-c", 'exec curl "$@" 2>&1', "curl", ...args], (error, stdout) =>
        error ? reject(error) : resolve(stdout),
      ),
    );
    const { page, wrong, close } = await at.open("check");
    await page.evaluate(`
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([${JSON.stringify(printed)}], "curl.txt"));
      for (const type of ["dragover", "drop"])
        document.querySelector(".judging").dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
    `);
    const article = page.locator(".judged", { hasText: "curl.txt" });
    await article.waitFor();
    await expect.poll(() => article.locator(".chip").first().textContent()).toBe("0 errors");
    await expect.poll(() => article.locator(".captured").textContent()).toMatch(/^data: \{.*data: \[DONE\]/s);
    expect(wrong).toEqual([]);
    await close();
  });

  test("what cannot be read is told in words", async () => {
    const { page, wrong, close } = await at.open("check");
    const har = Buffer.from('{"log":{"entries":[]}}');
    await page.locator(".judging input[type=file]").setInputFiles({ name: "no.har", mimeType: "", buffer: har });
    await page.locator(".banner", { hasText: "no.har: there is no answer in it" }).waitFor();
    await page.getByLabel("Captured text").fill('{"truewire":1,"request":');
    await page.getByRole("button", { name: "Judge", exact: true }).click();
    await page.locator(".banner", { hasText: "pasted text:1: not JSON" }).waitFor();
    expect(wrong).toEqual([]);
    await close();
  });

  test("the report of truewire check is judged answer by answer", async () => {
    const report = await runTruewire(["check", `${at.server.url}/v1`, "--only", "text", "--format", "json"]);
    const count = (JSON.parse(report.stdout) as { exchanges: { response?: unknown }[] }).exchanges.filter(
      ({ response }) => response,
    ).length;
    expect(count).toBeGreaterThan(1);
    const { page, wrong, close } = await at.open("check");
    await page.evaluate(`
      const clipboardData = new DataTransfer();
      clipboardData.setData("text", ${JSON.stringify(report.stdout)});
      document.querySelector(".judging textarea").dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    `);
    await expect.poll(() => page.locator(".judged").count()).toBe(Math.min(count, 50));
    expect(wrong).toEqual([]);
    await close();
  });

  test("a long capture leaves the tab alive", async () => {
    const { page, wrong, close } = await at.open("check");
    const [first = ""] = broken.split("\n\n");
    const long = `${`${first}\n\n`.repeat(20_000 * pageSize)}data: [DONE]\n\n`;
    await page.evaluate(countFrames);
    await page
      .locator(".judging input[type=file]")
      .setInputFiles({ name: "long.sse", mimeType: "", buffer: Buffer.from(long) });
    await page.locator(".judged").waitFor();
    // Were it judged where the page is drawn, there would be one or two frames.
    expect(await page.evaluate("globalThis.framesWhileJudging")).toBeGreaterThan(5);
    await expect.poll(() => page.locator(".captured .block").last().textContent()).toContain("[DONE]");
    expect(wrong).toEqual([]);
    await close();
  });
});
