#!/usr/bin/env node
// Makes the pictures of the page in docs/, of what `npm run build` has built, with the bundled demo model:  npm run screenshots
// Look at them before you commit them. It needs a Chromium: CHROME_PATH, or chromium on the PATH.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

/** Of one picture, in bytes: all of them together are loaded with the docs. */
const largest = 60_000;

const { server, url } = await serve();
const almost = await almostCompatible(url);
const gateway = await serve(`${almost.url}/v1`);
// The Models view shows the path of a model: not that of this folder.
const models = mkdtempSync(join(tmpdir(), "models-"));
copyFileSync("models/demo/demo.gguf", join(models, "demo.gguf"));
const local = await serve(join(models, "demo.gguf"));
const browser = await chromium.launch({
  executablePath: process.env.CHROME_PATH ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});

try {
  await picture("page", { viewport: { width: 1200, height: 720 } }, async (page) => {
    await page.getByRole("button", { name: "See the probability of each token" }).click();
    await answered(page);
    await page.locator("#settings summary", { hasText: "Choices" }).click();
    await page.getByLabel("Choices side by side").fill("2");
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByRole("button", { name: "Ask again" }).last().click();
    await answered(page);
    // The token that might most likely have been another one.
    const tokens = page.locator("[data-sure]");
    const sure = await tokens.evaluateAll((all) => all.map((token) => Number(token.dataset.sure)));
    await tokens.nth(sure.indexOf(Math.min(...sure))).hover();
    await page.getByRole("tooltip").waitFor();
  });
  await picture("page-phone", { viewport: { width: 390, height: 700 }, colorScheme: "dark" }, async (page) => {
    await page.getByRole("button", { name: "Call a tool" }).click();
    await answered(page);
  });
  await picture("page-judge", { viewport: { width: 1000, height: 640 }, colorScheme: "dark" }, async (page) => {
    const asked = { model: "demo", stream: true, messages: [{ role: "user", content: "Hello!" }] };
    const answer = await fetch(`${almost.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(asked),
    });
    const file = { name: "answer.sse", mimeType: "", buffer: Buffer.from(await answer.text()) };
    await page.getByRole("link", { name: "Check" }).click();
    await page.locator(".judging input[type=file]").setInputFiles(file);
    await page.locator(".judged .captured mark").first().waitFor();
    await page.locator(".judged").evaluate((element) => element.scrollIntoView());
  });
  await picture("page-models", { viewport: { width: 1000, height: 760 }, at: local.url }, async (page) => {
    const stopping = new AbortController();
    const asked = { model: "demo", stream: true, max_tokens: 1500, ignore_eos: true };
    for (const content of ["Write a story about a fox.", "Write a story about a whale."]) {
      fetch(`${local.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...asked, messages: [{ role: "user", content }] }),
        signal: stopping.signal,
      })
        .then((answer) => answer.text())
        .catch(() => {});
    }
    await page.getByRole("link", { name: "Models" }).click();
    await page.getByRole("button", { name: "demo", exact: true }).click();
    await page
      .getByText(/\d tokens\/s/)
      .nth(1)
      .waitFor();
    return () => stopping.abort();
  });
  await picture("page-inspect", { viewport: { width: 1100, height: 640 }, at: gateway.url }, async (page) => {
    for (const content of ["What is the capital of France?", "Hello!"]) {
      const asked = { model: "demo", stream: true, messages: [{ role: "user", content }] };
      const headers = { "content-type": "application/json" };
      await (
        await fetch(`${gateway.url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(asked) })
      ).text();
    }
    await page.getByRole("link", { name: "Inspect" }).click();
    await page.locator(".request-row").first().click();
    await page.getByRole("tab", { name: "Wire" }).click();
    await page.locator("mark").first().waitFor();
  });
  await picture("page-check", { viewport: { width: 1000, height: 640 } }, async (page) => {
    await page.getByRole("link", { name: "Check" }).click();
    await page.getByRole("button", { name: "Add a second server" }).click();
    await page.getByLabel("Base URL").nth(1).fill(`${almost.url}/v1`);
    await page.getByLabel("What is asked").selectOption("chat");
    await page.getByRole("button", { name: "Check", exact: true }).click();
    await page.locator(".report").nth(1).waitFor({ timeout: 120_000 });
    await page
      .locator(".probes")
      .first()
      .evaluate((element) => element.scrollIntoView());
  });
} finally {
  await browser.close();
  almost.server.close();
  almost.server.closeAllConnections();
  for (const { server: process } of [gateway, local, { server }]) {
    process.kill();
    await once(process, "exit");
  }
  rmSync(models, { recursive: true });
}

/** A server of the demo model, or of other targets. */
async function serve(...targets) {
  const server = spawn(
    process.execPath,
    ["dist/cli/main.js", "serve", "--port", "0", "--log-level", "silent", ...targets],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const url = await new Promise((resolve, reject) => {
    let text = "";
    server.stdout.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
      const found = /(http:\/\/\S+)\/v1\b/.exec(text);
      if (found) resolve(found[1]);
    });
    server.on("exit", (code) => reject(new Error(`the server exited with ${code}`)));
  });
  return { server, url };
}

/** Opens the page, brings it into the state that `prepare` makes, and writes what is seen to docs/NAME.webp. `prepare` may return what stops it. */
async function picture(name, { at = url, ...options }, prepare) {
  const context = await browser.newContext({ colorScheme: "light", ...options });
  const page = await context.newPage();
  await page.goto(at);
  await page.locator("option").first().waitFor({ state: "attached" });
  const stop = await prepare(page);
  const png = await page.screenshot({ animations: "disabled", caret: "hide" });
  stop?.();
  await context.close();
  const webp = await packed(png);
  if (webp.length > largest) throw new Error(`docs/${name}.webp would have ${webp.length} bytes, more than ${largest}`);
  writeFileSync(`docs/${name}.webp`, webp);
  console.log(`docs/${name}.webp: ${webp.length} bytes`);
}

/** The same picture as WebP, which the browser writes: half as large. */
async function packed(png) {
  const page = await browser.newPage();
  const data = await page.evaluate(
    async (source) => {
      const image = await createImageBitmap(await (await fetch(source)).blob());
      const canvas = new OffscreenCanvas(image.width, image.height);
      canvas.getContext("2d").drawImage(image, 0, 0);
      const blob = await canvas.convertToBlob({ type: "image/webp", quality: 0.8 });
      return [...new Uint8Array(await blob.arrayBuffer())];
    },
    `data:image/png;base64,${png.toString("base64")}`,
  );
  await page.close();
  return Buffer.from(data);
}

async function answered(page) {
  await page.locator(".answer .facts").first().waitFor({ timeout: 60_000 });
}

/** The same server through a proxy that damages its streams: no end mark, a foreign finish reason, a role with each delta. */
async function almostCompatible(origin) {
  const proxy = createServer((incoming, outgoing) => {
    const { host: _, ...headers } = incoming.headers;
    const onwards = request(`${origin}${incoming.url}`, { method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      const isStream = String(answer.headers["content-type"]).startsWith("text/event-stream");
      if (!isStream) return void answer.pipe(outgoing);
      answer.setEncoding("utf8").on("data", (text) => {
        const spoiled = text
          .replace("data: [DONE]\n\n", "")
          .replaceAll('"finish_reason":"stop"', '"finish_reason":"eos"')
          .replaceAll('"delta":{"content"', '"delta":{"role":"assistant","content"');
        outgoing.write(spoiled);
      });
      answer.on("end", () => outgoing.end());
    });
    onwards.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onwards.destroy());
    incoming.pipe(onwards);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return { server: proxy, url: `http://127.0.0.1:${proxy.address().port}` };
}
