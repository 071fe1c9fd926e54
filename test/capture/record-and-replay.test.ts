import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import OpenAI from "openai";
import { afterAll, describe, expect, test } from "vitest";
import { builtMain } from "../support/serve.ts";
import { serveTurns } from "../support/serve-turns.ts";
import { closeAfterTest, listenInTest } from "../support/close-after-test.ts";

if (!existsSync("/dev/full")) console.log("skipped: this system has no /dev/full, which is a disk that is always full");
const folder = mkdtempSync(join(tmpdir(), "truewire-capture-"));
const file = (name: string): string => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a command until the test is over; resolves with its address when it says it. */
async function start(
  ...args: string[]
): Promise<{ url: string; stderr: () => string; stop: () => Promise<number | null> }> {
  const child = spawn(process.execPath, [builtMain, ...args, "--port", "0"], { stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const exited = new Promise<number | null>((resolve) => child.on("exit", resolve));
  closeAfterTest(() => child.kill("SIGKILL"));
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      const found = /(http:\/\/\S+)\/v1\b.*\n/.exec((stdout += text));
      if (found) resolve(found[1] ?? "");
    });
    void exited.then(() => reject(new Error(stderr)));
  });
  return {
    url,
    stderr: () => stderr,
    stop: () => {
      child.kill("SIGTERM");
      return exited;
    },
  };
}

/** A server that sends these pieces as they are. */
async function sending(pieces: readonly Uint8Array[], breaksOff = false): Promise<string> {
  const { url } = await listenInTest((request, response) => {
    request.resume().on("end", async () => {
      response.writeHead(200, { "Content-Type": "text/event-stream", "Set-Cookie": "session=secret", "X-Kept": "yes" });
      for (const piece of pieces) {
        response.write(piece);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      if (breaksOff) response.destroy();
      else response.end();
    });
  });
  return `${url}/v1`;
}

const post = (url: string, body: object): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer sk-very-secret" },
    body: JSON.stringify(body),
  });

describe("record and replay", () => {
  test("a conversation through the official SDK is the same when it is replayed", async () => {
    const server = await serveTurns([
      ["Hello ", "there."],
      ["Good ", "bye."],
    ]);
    closeAfterTest(() => server.close());
    const output = file("sdk.jsonl");
    const talk = async (url: string): Promise<unknown[]> => {
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "sk-very-secret", maxRetries: 0 });
      const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "Hi" }];
      const stream = await client.chat.completions.create({ model: "scripted", messages, stream: true });
      const chunks: unknown[] = [];
      for await (const chunk of stream) chunks.push(chunk);
      messages.push({ role: "assistant", content: "Hello there." }, { role: "user", content: "Bye" });
      return [...chunks, await client.chat.completions.create({ model: "scripted", messages })];
    };
    const recorder = await start("record", `${server.url}/v1`, "--output", output);
    const first = await talk(recorder.url);
    expect(await recorder.stop()).toBe(0);
    expect(JSON.stringify(first)).toContain("bye.");
    const text = readFileSync(output, "utf8");
    expect(text.trimEnd().split("\n")).toHaveLength(2);
    expect(text).not.toContain("sk-very-secret");
    expect(statSync(output).mode & 0o777).toBe(0o600);

    const replayer = await start("replay", output, "--speed", "max");
    expect(await talk(replayer.url)).toEqual(first);
    const missing = await post(replayer.url, {
      model: "other",
      messages: [{ role: "user", content: "Hi" }],
      stream: true,
    });
    expect([missing.status, await missing.json()]).toMatchObject([
      404,
      {
        error: {
          code: "not_captured",
          message: expect.stringContaining('differs at model: expected "scripted", received "other"'),
        },
      },
    ]);
  });

  test("bytes are the same, cut anywhere, UTF-8 or not", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { minLength: 1, maxLength: 4 }),
        async (pieces) => {
          const output = file(`bytes-${Math.random()}.jsonl`);
          const recorder = await start("record", await sending(pieces), "--output", output);
          const first = await post(recorder.url, { a: 1 });
          const bytes = Buffer.from(await first.arrayBuffer());
          expect(bytes.equals(Buffer.concat(pieces))).toBe(true);
          await recorder.stop();
          const replayer = await start("replay", output);
          const again = await post(replayer.url, { a: 1 });
          expect(Buffer.from(await again.arrayBuffer()).equals(bytes)).toBe(true);
          expect(again.headers.get("x-kept")).toBe("yes");
          expect(again.headers.get("set-cookie")).toBe(null);
          await replayer.stop();
        },
      ),
      { numRuns: 8 },
    );
  });

  test("an answer that broke off breaks off again, at the same place", async () => {
    const output = file("broken.jsonl");
    const recorder = await start("record", await sending([Buffer.from("data: one\n\n")], true), "--output", output);
    await expect(post(recorder.url, {}).then((response) => response.text())).rejects.toThrow();
    await recorder.stop();
    const replayer = await start("replay", output);
    const response = await post(replayer.url, {});
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe("data: one\n\n");
    await expect(reader.read()).rejects.toThrow();
  });

  test("pieces keep their time", async () => {
    const pieces = [0, 400].map((ms, at) => ({ ms, text: `data: ${at}\n\n` }));
    const recording = { truewire: 1, request: { method: "POST", path: "/v1/chat/completions" } };
    writeFileSync(file("slow.jsonl"), JSON.stringify({ ...recording, response: { status: 200, headers: [], pieces } }));
    const replayer = await start("replay", file("slow.jsonl"));
    const begun = performance.now();
    const response = await post(replayer.url, {});
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe("data: 0\n\n");
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe("data: 1\n\n");
    // Never early; on a busy machine it may be late.
    expect(performance.now() - begun).toBeGreaterThanOrEqual(399);
  });

  // The length of a packed body left a client of the unpacked one with half of it, and a value of two lines ended the answer without a
  // word.
  test("a HAR file's headers do not spoil the answer", async () => {
    const headers = [
      { name: "content-encoding", value: "gzip" },
      { name: "content-length", value: "5" },
      { name: "x-two", value: "a\nb" },
      { name: "x-one", value: "a" },
    ];
    const request = { method: "POST", url: "https://h.test/v1/chat/completions", postData: { text: "{}" } };
    const answer = { status: 200, headers, content: { text: "a body that is longer" } };
    writeFileSync(file("a.har"), JSON.stringify({ log: { entries: [{ time: 1, request, response: answer }] } }));
    const replayer = await start("replay", file("a.har"));
    const response = await post(replayer.url, {});
    expect(await response.text()).toBe("a body that is longer");
    expect([response.headers.get("x-one"), response.headers.get("x-two")]).toEqual(["a", null]);
  });

  test.skipIf(!existsSync("/dev/full"))(
    "on a full disk everything is passed on, and the terminal says what is lost",
    async () => {
      const recorder = await start("record", await sending([Buffer.from("data: one\n\n")]), "--output", "/dev/full");
      for (let i = 0; i < 2; i++) expect(await (await post(recorder.url, {})).text()).toBe("data: one\n\n");
      await expect.poll(() => recorder.stderr().match(/not recorded: ENOSPC/g)?.length).toBe(2);
    },
  );

  // Every web page could use the recorded server through it, by its own name or another one that points here (DNS rebinding).
  test("a page of another site, and a name that anybody may own, are refused, and reach no server", async () => {
    let asked = 0;
    const target = await listenInTest((request, response) => {
      asked++;
      request.resume().on("end", () => response.end("{}"));
    });
    const output = file("pages.jsonl");
    const url = `${target.url}/v1`;
    const recorder = await start("record", url, "--output", output);
    const { port } = new URL(recorder.url);
    const send = (path: string, headers: Record<string, string>): Promise<number> =>
      new Promise((resolve, reject) => {
        const request = httpRequest({ host: "127.0.0.1", port, path, method: "POST", headers }, (response) => {
          response.resume().on("end", () => resolve(response.statusCode ?? 0));
        });
        request.on("error", reject).end("{}");
      });
    expect(await send("/v1/chat/completions", { origin: "https://evil.example" })).toBe(403);
    expect(await send("/v1/chat/completions", { host: "evil.example" })).toBe(403);
    expect(await send("http://evil.example/v1/chat/completions", {})).toBe(403);
    expect(asked).toBe(0);
    expect(await send("/v1/chat/completions?sig=abcdef", { origin: "http://localhost:3000" })).toBe(200);
    expect(await send("/v1/chat/completions", { host: "localhost" })).toBe(200);
    await expect.poll(() => readFileSync(output, "utf8").trim().split("\n")).toHaveLength(2);
    expect(readFileSync(output, "utf8")).not.toContain("abcdef");
    expect(recorder.stderr()).not.toContain("abcdef");
  });

  test("a server that is not there is a 502, which is not recorded", async () => {
    const output = file("nobody.jsonl");
    const recorder = await start("record", "http://127.0.0.1:9/v1", "--output", output);
    const response = await post(recorder.url, {});
    expect([response.status, await response.text()]).toEqual([502, expect.stringContaining("does not answer")]);
    expect(readFileSync(output, "utf8")).toBe("");
  });

  test.each([
    [
      ["record", "ftp://localhost:1"],
      "ftp://localhost:1 is not a base URL; expected one such as http://localhost:11434/v1",
    ],
    [["replay", file("none.jsonl")], "none.jsonl: there is no such file; expected a recording of truewire record"],
    [["replay", "package.json", "--speed", "0"], "--speed must be a number above 0, or max, not 0"],
  ])("%j does not start, and says why", async (args, message) => {
    await expect(start(...args)).rejects.toThrow(message);
  });
});
