import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, expect, test } from "vitest";
import { type Api, answerOf, roots, turnsOf } from "../../src/judge/between/facts.ts";
import { type CaptureFile, recordedFactsOf } from "../../src/judge/between/recorded-facts.ts";
import { type BetweenRun, runBetween } from "../../src/judge/between/run-between.ts";
import { startVendor } from "../../src/judge/between/vendor.ts";
import { writeRecording } from "../../src/judge/capture/recording.ts";
import { recordServer } from "../../src/judge/capture/record-server.ts";
import { listen } from "../support/listen.ts";
import { freePort } from "../support/redis-server.ts";
import { runTruewire } from "../support/serve.ts";
import { type Mutation, startPassThrough } from "./pass-through.ts";
import { startTranslator } from "./translator.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-sessions-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const rule = "A rule of the session that is worth caching. ".repeat(200);
const parameters = { type: "object" as const, properties: { city: { type: "string" } } };

/** What a client sends to a vendor in a session of two turns, as `truewire record` writes it. */
async function recorded(api: Api, session: (url: string) => Promise<void>): Promise<CaptureFile> {
  let asked = 0;
  const vendor = await startVendor({
    apis: [api],
    port: 0,
    answer() {
      const call = { id: `call_${++asked}`, name: "get_weather", arguments: '{"city":"Bern"}' };
      return { batches: answerOf(asked % 2 === 1 ? [call] : [{ text: "It rains." }]) };
    },
  });
  const lines: string[] = [];
  const server: Server = recordServer({
    target: vendor.url,
    keep: (exchange) => void lines.push(writeRecording(exchange)),
    refusal: () => undefined,
    log: () => {},
  });
  const { url, close } = await listen(server);
  await session(url);
  await close();
  await vendor.close();
  return { name: "session.jsonl", text: lines.join("\n") };
}

async function messagesSession(url: string): Promise<void> {
  const client = new Anthropic({ baseURL: url, apiKey: "k", maxRetries: 0 });
  const messages: Anthropic.MessageParam[] = [];
  for (const question of ["How is the weather in Bern?", "And now?"]) {
    messages.push({ role: "user", content: question });
    for (let isOpen = true; isOpen;) {
      const { content, stop_reason: reason } = await client.messages.create({
        model: "m",
        max_tokens: 200,
        system: [{ type: "text", text: rule, cache_control: { type: "ephemeral" } }],
        tools: [{ name: "get_weather", input_schema: parameters }],
        messages,
      });
      messages.push({ role: "assistant", content });
      isOpen = reason === "tool_use";
      const results = content.flatMap((block) =>
        block.type === "tool_use" ? [{ type: "tool_result" as const, tool_use_id: block.id, content: "rain" }] : [],
      );
      if (isOpen) messages.push({ role: "user", content: results });
    }
  }
}

async function chatSession(url: string): Promise<void> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "k", maxRetries: 0 });
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "system", content: rule }];
  messages.push({ role: "user", content: "How is the weather in Bern?" });
  for (let turn = 0; turn < 2; turn++) {
    const tools = [{ type: "function" as const, function: { name: "get_weather", parameters } }];
    const { choices } = await client.chat.completions.create({ model: "m", messages, tools });
    const message = choices[0]?.message;
    if (!message) throw new Error("The vendor has not answered.");
    messages.push(message);
    for (const { id } of message.tool_calls ?? []) messages.push({ role: "tool", tool_call_id: id, content: "rain" });
  }
}

async function run(
  client: Api,
  vendor: Api,
  sessions: readonly CaptureFile[],
  mutation: Mutation,
): Promise<BetweenRun> {
  let vendorUrl = "";
  const behind = await startPassThrough(() => vendorUrl, mutation);
  const translator = client === vendor ? undefined : await startTranslator(behind.url, vendor);
  const url = translator?.url ?? behind.url;
  const own = { url, client, vendor, key: "k", timeoutMs: 60_000, vendorPort: 0, model: "m" };
  const result = await runBetween({ ...own, sessions, onVendor: (at) => (vendorUrl = at) });
  await translator?.close(0);
  behind.close();
  return result;
}

const keysOf = ({ findings }: BetweenRun): string[] =>
  findings.filter(({ severity }) => severity !== "note").map(({ key, message }) => `${key}: ${message}`);

test("a session of Anthropic's SDK arrives with all turns, and what a gateway does to it is found", async () => {
  const session = await recorded("messages", messagesSession);
  const facts = recordedFactsOf("messages", "m", [session]);
  const ids = facts.map(({ id }) => id);
  expect(ids).toEqual([0, 2, 4, 6].map((at) => expect.stringMatching(new RegExp(`^recorded-0-${at}-`))));
  expect(facts.map(({ continues }) => continues)).toEqual([undefined, ...ids.slice(0, 3)]);
  expect(keysOf(await run("messages", "messages", [session], {}))).toEqual([]);
  expect(keysOf(await run("messages", "chat", [session], {}))).toEqual([]);
  const unmarked = await run("messages", "messages", [session], {
    requestText: (text) => text.replaceAll(',"cache_control":{"type":"ephemeral"}', ""),
  });
  expect(keysOf(unmarked).join("\n")).toContain("request cache-lost marks");
  const shortened = await run("messages", "messages", [session], {
    requestText: (text) => text.replaceAll('"content":"rain', '"content":"r'),
  });
  expect(keysOf(shortened).join("\n")).toMatch(/request (?:changed|not-sent)/);
});

test("a recording is a file or a folder for the command, and a session of OpenAI's SDK arrives", async () => {
  const session = await recorded("chat", chatSession);
  writeFileSync(join(folder, "one.jsonl"), session.text);
  const port = await freePort();
  const gateway = await startPassThrough(() => `http://127.0.0.1:${port}`);
  const args = ["between", gateway.url, "--model", "m", "--port", String(port), "--sessions"];
  const { code, stdout, stderr } = await runTruewire([...args, folder]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("chat to chat: 2 of 2 facts arrive; 0 errors");
  writeFileSync(join(folder, "other.har"), '{"log":{"entries":[]}}');
  const none = await runTruewire([...args, join(folder, "other.har")]);
  gateway.close();
  expect([none.code, none.stderr]).toEqual([
    2,
    expect.stringContaining("expected recorded requests to /v1/chat/completions in "),
  ]);
});

const captures = new URL("../../../shared/client-captures/", import.meta.url);
const names = existsSync(captures) ? readdirSync(captures).filter((name) => name.endsWith(".jsonl")) : [];
if (names.length === 0) console.log("skipped: no ../shared/client-captures to replay");

/** A line of these captures as a recording. Long texts have the length that they had. */
function recordingOf(line: string): string {
  const long = line.replace(/…<(\d{1,6}) characters>/g, (_, length: string) => "word ".repeat(Number(length) / 5));
  const { method = "POST", url, body } = JSON.parse(long) as { method?: string; url: string; body?: unknown };
  const path = new URL(url, "http://localhost").pathname;
  const request = { method, path, ...(body !== undefined && { body: JSON.stringify(body) }) };
  return writeRecording({ request, response: { status: 200, headers: [], pieces: [] } });
}

test.runIf(names.length > 0).each(names)("%s arrives through a gateway that changes nothing", async (name) => {
  const lines = readFileSync(new URL(name, captures), "utf8")
    .split("\n")
    .filter((line) => line !== "");
  const session = { name, text: lines.map(recordingOf).join("\n") };
  const api = (Object.keys(turnsOf) as Api[]).find((one) => lines.some((line) => line.includes(pathIn[one]))) ?? "chat";
  expect(keysOf(await run(api, api, [session], {})), roots[api]).toEqual([]);
});

const pathIn: Readonly<Record<Api, string>> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
  ollama: "/api/chat",
  gemini: "/v1beta/models/",
};
