import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { readBlocks } from "../docs/read-blocks.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { hasBrowser, launchBrowser } from "../support/open-page.ts";
import { idOf, open } from "./support.ts";

/** A proxy that breaks off its first connections after as many bytes of their answers. */
async function breakingProxy(to: string, cuts: readonly number[]): Promise<{ url: string; connections: () => number }> {
  let connections = 0;
  const proxy = createServer((client) => {
    let left = cuts[connections++] ?? Number.POSITIVE_INFINITY;
    const server = connect(Number(new URL(to).port), "127.0.0.1");
    client.pipe(server);
    client.on("error", () => server.destroy()).on("close", () => server.destroy());
    server.on("error", () => client.destroy()).on("end", () => client.end());
    server.on("data", (data) => {
      client.write(data.subarray(0, left));
      left -= data.length;
      if (left <= 0) client.destroySoon();
    });
  });
  await new Promise<void>((listening) => proxy.listen(0, "127.0.0.1", listening));
  closeAfterTest(() => void proxy.close());
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, connections: () => connections };
}

test("the client of docs/streams.md gets the whole answer over a connection that breaks off again and again", async () => {
  const page = "docs/streams.md";
  const block = readBlocks(page, readFileSync(page, "utf8")).find(({ language }) => language === "ts");
  const words = Array.from({ length: 40 }, (_, number) => `word${number} `);
  const { url, allow } = await open(words);
  allow(Number.POSITIVE_INFINITY);
  // The answer's headers have some 300 bytes, and an event 190.
  const proxy = await breakingProxy(url, [900, 350, 1500, 700, 2200]);
  const folder = mkdtempSync(join(tmpdir(), "truewire-resume-"));
  closeAfterTest(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "client.ts");
  const code = block?.text
    .replaceAll("http://127.0.0.1:8080", proxy.url)
    .replace('model: "model"', 'model: "scripted"');
  writeFileSync(file, code ?? "");
  const { stdout } = await promisify(execFile)(process.execPath, [resolve("node_modules/jiti/lib/jiti-cli.mjs"), file]);
  expect(stdout).toBe(words.join(""));
  expect(proxy.connections()).toBe(6);
});

interface Seen {
  readonly ids: readonly string[];
  readonly datas: readonly string[];
}

test.skipIf(!hasBrowser)(
  "a browser's EventSource resumes by itself, and stops when it has the whole stream",
  async () => {
    const { url, allow } = await open(Array.from({ length: 40 }, (_, number) => `word${number} `));
    allow(Number.POSITIVE_INFINITY);
    const proxy = await breakingProxy(url, [4000, 4000]);
    const browser = await launchBrowser();
    closeAfterTest(() => browser.close());
    const page = await browser.newPage();
    await page.goto(`${proxy.url}/health`);
    const body = JSON.stringify({ model: "scripted", stream: true, messages: [{ role: "user", content: "x" }] });
    const { ids, datas } = await page.evaluate<Seen>(`(async () => {
    const headers = { "content-type": "application/json", "x-truewire-resume": "60s" };
    const response = await fetch("/v1/chat/completions", { method: "POST", headers, body: ${JSON.stringify(body)} });
    const source = new EventSource("/v1/streams/" + response.headers.get("x-request-id"));
    const [ids, datas] = [[], []];
    source.onmessage = ({ lastEventId, data }) => {
      ids.push(lastEventId);
      datas.push(data);
    };
    await new Promise((resolve) => {
      source.onerror = () => source.readyState === EventSource.CLOSED && resolve();
    });
    return { ids, datas };
  })()`);
    expect(ids).toEqual(Array.from(ids.keys(), String));
    expect(datas.at(-1)).toBe("[DONE]");
    expect(idOf(`id: ${ids.at(-1)}\n`)).toBe(42);
  },
);
