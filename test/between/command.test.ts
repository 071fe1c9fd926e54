import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { afterAll, expect, test } from "vitest";
import { freePort } from "../support/redis-server.ts";
import { runTruewire, startTruewire } from "../support/serve.ts";
import { startPassThrough } from "./pass-through.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-between-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function between(url: string, port: number, ...more: string[]) {
  const api = ["--client", "messages", "--vendor", "anthropic", "--port", String(port)];
  return runTruewire(["between", url, ...api, "--only", "cache-marks", "temperature", ...more]);
}

test("a loss is an error; with the report as the baseline it is known", async () => {
  const port = await freePort();
  const gateway = await startPassThrough(() => `http://127.0.0.1:${port}`, {
    request: ({ temperature: _lost, ...body }) => body,
  });
  const report = join(folder, "report.json");
  const lossy = await between(gateway.url, port, "--format", "json", "--output", report);
  expect(lossy).toMatchObject({ code: 1, stderr: "" });
  const { counts, findings } = JSON.parse(readFileSync(report, "utf8")) as {
    counts: unknown;
    findings: readonly { key: string; curl: string }[];
  };
  expect(counts).toEqual({ error: 1, warning: 0, note: 0 });
  expect(findings).toMatchObject([{ key: "request lost sampling.temperature", facts: ["temperature"] }]);
  expect(findings[0]?.curl).toContain('"temperature":0.3');
  const known = await between(gateway.url, port, "--baseline", report);
  expect(known.code).toBe(0);
  expect(known.stdout).toContain("error (known)  request lost sampling.temperature");
  const again = await between(gateway.url, port, "--confirm", "2");
  expect(again.stdout).toContain("temperature is lost: 0.3. Seen again in 2 of 2 requests.");
  const junit = await between(gateway.url, port, "--format", "junit");
  expect(junit.stdout).toContain('<testsuite name="truewire between');
  expect(junit.stdout).toContain('<failure type="error"');
  const html = await between(gateway.url, port, "--format", "html");
  expect(html.stdout).toMatch(/^<!doctype html>/);
  expect(html.stdout).not.toMatch(/<script|https:\/\/(?!example)/);
  gateway.close();
});

test("headers and members can be added to every request", async () => {
  const port = await freePort();
  const seen: unknown[] = [];
  const gateway = await startPassThrough(() => `http://127.0.0.1:${port}`, {
    requestHeaders: (headers) => {
      seen.push(headers["x-provider"]);
      return headers;
    },
    request: ({ top_k: topK, ...body }) => {
      seen.push(topK);
      return { ...body, top_k: topK };
    },
  });
  const { code } = await between(gateway.url, port, "--header", "X-Provider: a: b", "--body", '{"top_k":5}');
  gateway.close();
  expect([code, new Set(seen)]).toEqual([0, new Set(["a: b", 5])]);
});

test("a gateway that is not configured for the vendor is exit code 2, with what to do", async () => {
  const port = await freePort();
  const gateway = await startPassThrough(() => "http://127.0.0.1:9");
  const { code, stderr } = await between(gateway.url, port);
  gateway.close();
  expect(code).toBe(2);
  expect(stderr).toContain(
    `Configure the gateway so that the model between is one of anthropic at http://127.0.0.1:${port}`,
  );
});

test("a port in use is exit code 2, with what to do", async () => {
  const gateway = await startPassThrough(() => "http://127.0.0.1:9");
  const port = Number(new URL(gateway.url).port);
  const { code, stderr } = await between(gateway.url, port);
  gateway.close();
  expect(code).toBe(2);
  expect(stderr).toContain(`Port ${port} is in use. Choose another with --port`);
});

test.each([
  [["ftp://x"], /Give the gateway's base URL/],
  [["http://x", "--client", "bedrock"], /--client must be one of chat, responses, messages, ollama, gemini/],
  [["http://x", "--body", "[]"], /--body must be a JSON object, such as '\{"max_tokens": 1000\}', not \[\]/],
  [["http://x", "--seeds", "a"], /--seeds must be a whole number such as 3, not a/],
  [["http://x", "--header", "x"], /--header must be a name and a value, such as "x-provider: openai", not x/],
  [["http://x", "--format", "xml"], /--format must be one of pretty, json, junit, html/],
  [["http://x", "--baseline", "missing.json"], /missing\.json: /],
])("%j is refused with what is expected", async (args, message) => {
  const { code, stderr } = await runTruewire(["between", ...args], { cwd: folder });
  expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
});

test("the vendor alone answers an SDK from a script, and refuses as Anthropic does", async () => {
  const script = join(folder, "script.json");
  const call = { id: "toolu_1", name: "get_weather", arguments: '{"city":"Bern"}' };
  writeFileSync(script, JSON.stringify([{ parts: [{ text: "Hello" }] }, { parts: [call] }]));
  const vendor = await startTruewire(["--api", "messages", "--model", "m", "--script", script], { command: "vendor" });
  const client = new Anthropic({ baseURL: vendor.url, apiKey: "k", maxRetries: 0 });
  const ask = { model: "m", max_tokens: 100, messages: [{ role: "user" as const, content: "Hi" }] };
  expect((await client.messages.create(ask)).content).toMatchObject([{ type: "text", text: "Hello" }]);
  const second = await client.messages.stream(ask).finalMessage();
  expect(second.content).toMatchObject([{ type: "tool_use", name: "get_weather", input: { city: "Bern" } }]);
  await expect(client.messages.create({ ...ask, max_tokens: -1 })).rejects.toThrow(/max_tokens/);
  await vendor.stop();
});
