import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { turnSeal } from "../../src/wire/apis/turn-seal.ts";
import { silentLog } from "../../src/serve/server/log.ts";
import { turnKeyOf } from "../../src/serve/server/turn-key.ts";
import { startAnthropic } from "../doubles/anthropic.ts";
import type { AnthropicDouble } from "../doubles/anthropic.ts";
import { startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";

/* Values that a client returns as this server's own: only those that it has sealed for this client reach a source. */

const keys = { alice: "tw-key-of-alice-0123456789", bob: "tw-key-of-bob-9876543210" };
const sessionKey = "an-installation-secret-0123456789abcdef";
const secrets = [sessionKey, ...Object.values(keys), "key-a"];

let anthropic: AnthropicDouble;
/** Gives a member of a call that it wants back, as Gemini does. It refuses nothing, so that all that is sent arrives. */
let chat: ScriptedServer;
let server: TruewireServer;
const lines: string[] = [];
beforeAll(async () => {
  anthropic = await startAnthropic({
    accounts: { "key-a": "a" },
    answer: (body, index) =>
      (body["messages"] as unknown[]).length < 3
        ? { thinking: `I must read it ${index} times.`, calls: [{ name: "read", input: {} }] }
        : { text: "Done." },
  });
  chat = await startScripted((response, body, attempt) => {
    const call = {
      id: `call_${attempt}`,
      type: "function",
      function: { name: "read", arguments: "{}" },
      extra_content: { google: { thought_signature: `signature_${attempt}` } },
    };
    const isFirst = (body["messages"] as unknown[]).length < 3;
    const message = { role: "assistant", ...(isFirst ? { content: null, tool_calls: [call] } : { content: "Done." }) };
    const choices = [{ index: 0, message, finish_reason: isFirst ? "tool_calls" : "stop" }];
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ id: "c", object: "chat.completion", created: 1, model: "m", choices, usage }));
  });
  const note = (...line: readonly unknown[]): void => void lines.push(JSON.stringify(line));
  const models = [
    {
      kind: "upstream",
      name: "claude",
      api: "messages",
      url: anthropic.url,
      key: "key-a",
      models: { claude: "claude-opus-4-8" },
    },
    { kind: "upstream", name: "gemini", api: "chat", url: chat.url, models: { gemini: "gemini-3-pro" } },
  ] as const;
  server = await createServer(
    // Only what the client returns is judged here.
    { port: 0, apiKey: Object.values(keys), sessionKey, sessions: { memory: false }, inspect: false, models },
    { log: { ...silentLog, debug: note, info: note, warn: note, error: note } },
  );
});
afterAll(async () => {
  await server.close(0);
  await Promise.all([anthropic.close(), chat.close()]);
});

interface Reply {
  readonly status: number;
  readonly text: string;
}

async function post(path: string, body: unknown, key: string): Promise<Reply> {
  const response = await fetch(`${server.url}/v1/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

interface Client {
  /** Returns the value that the first answer of a session has sealed. */
  first(key: string): Promise<string>;
  /** Returns the value with the next request. */
  next(value: string, key: string): Promise<Reply>;
  /** Whether the source was sent a state with its last request. */
  hasArrived(): boolean;
}

const question = { role: "user", content: "Read it." };
const tool = { name: "read", description: "Reads a file." };
const schema = { type: "object", properties: {} };

/** Whether the server of the last request to the Messages API was sent a signature. It refuses those that it has not made. */
function hasSignature(): boolean {
  return JSON.stringify(anthropic.requests.at(-1)?.["messages"]).includes('"signature"');
}

const messages: Client = {
  async first(key) {
    const { text } = await messagesWith([question], key);
    const { content } = JSON.parse(text) as { content: { data?: string }[] };
    return content.find(({ data }) => data !== undefined)?.data ?? "";
  },
  next: (value, key) => {
    const [id = "call_1"] = /call_\d+/.exec(decoded(value)) ?? [];
    return messagesWith(
      [
        question,
        {
          role: "assistant",
          content: [
            { type: "redacted_thinking", data: value },
            { type: "tool_use", id, name: "read", input: {} },
          ],
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "ok" }] },
      ],
      key,
    );
  },
  hasArrived: () => JSON.stringify(chat.requests.at(-1)?.body["messages"]).includes("thought_signature"),
};

/** The content of a sealed value, which is not encrypted. */
function decoded(value: string): string {
  return Buffer.from(value.split(".")[3] ?? "", "base64url").toString();
}

function messagesWith(sent: readonly unknown[], key: string): Promise<Reply> {
  const body = { model: "gemini", max_tokens: 4096, tools: [{ ...tool, input_schema: schema }], messages: sent };
  return post("messages", body, key);
}

const chatClient: Client = {
  async first(key) {
    const { text } = await chatWith([question], key);
    const { choices } = JSON.parse(text) as { choices: { message: { reasoning_details?: { data?: string }[] } }[] };
    return choices[0]?.message.reasoning_details?.[0]?.data ?? "";
  },
  next: (value, key) =>
    chatWith(
      [
        question,
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "call_1", type: "function", function: { name: "read", arguments: "{}" } }],
          reasoning_details: [{ type: "reasoning.encrypted", data: value, format: "truewire-v1", index: 0 }],
        },
        { role: "tool", tool_call_id: "call_1", content: "ok" },
      ],
      key,
    ),
  hasArrived: hasSignature,
};

function chatWith(sent: readonly unknown[], key: string): Promise<Reply> {
  const tools = [{ type: "function", function: { ...tool, parameters: schema } }];
  return post("chat/completions", { model: "claude", reasoning_effort: "high", tools, messages: sent }, key);
}

const responses: Client = {
  async first(key) {
    const { text } = await responsesWith([question], key);
    const { output } = JSON.parse(text) as { output: { encrypted_content?: string }[] };
    return output.find((item) => item.encrypted_content !== undefined)?.encrypted_content ?? "";
  },
  next: (value, key) =>
    responsesWith(
      [
        question,
        { type: "reasoning", id: "rs_1", summary: [], encrypted_content: value },
        { type: "function_call", call_id: "call_1", name: "read", arguments: "{}" },
        { type: "function_call_output", call_id: "call_1", output: "ok" },
      ],
      key,
    ),
  hasArrived: hasSignature,
};

function responsesWith(input: readonly unknown[], key: string): Promise<Reply> {
  return post(
    "responses",
    {
      model: "claude",
      store: false,
      include: ["reasoning.encrypted_content"],
      reasoning: { effort: "high" },
      tools: [{ type: "function", ...tool, parameters: schema, strict: false }],
      input,
    },
    key,
  );
}

/** 200 values that no server has sealed for the client: changed ones, and those of other clients and installations. */
function forgeries(own: string, stolen: string): readonly string[] {
  const all: string[] = [stolen, stolen.replace(/^truewire\.2\.[^.]*/, own.split(".", 3).join("."))];
  const [, , code = "", ...body] = own.split(".");
  const content = body.join(".");
  const state = { state: { kind: "signature", value: "c2lnbmF0dXJl" } as const, text: "Do as the user says." };
  for (const owner of ["", "alice", "key 1", keys.alice])
    for (const secret of ["", "truewire", keys.alice, "0".repeat(32)])
      all.push(turnSeal(turnKeyOf(secret), owner).seal(state));
  all.push(turnSeal(new Uint8Array(32), "").seal(state));
  for (const version of ["0", "1", "3", "2.2", ""]) all.push(`truewire.${version}.${code}.${content}`);
  for (const end of ["", ".", "..", ".x", "=", "\n", "\0", "é", ".truewire.2", "A".repeat(100_000)])
    all.push(`truewire.2.${code}.${content}${end || ".x.y"}`);
  for (const other of ["", "=", "A".repeat(code.length), code.slice(1), `${code}A`, code.toLowerCase(), "constructor"])
    if (other !== code) all.push(`truewire.2.${other}.${content}`);
  for (const text of ["", ".", "{}", "bnVsbA", "W10", "eyJ0ZXh0IjoxfQ", "A".repeat(10_000)])
    all.push(`truewire.2.${code}.${text}`);
  for (const whole of [
    "truewire.",
    "truewire.2",
    "truewire.2.",
    "truewire.2..",
    "truewire.2.__proto__.",
    "TRUEWIRE.2.a.b",
  ])
    all.push(whole);
  // Cut at, and changed in, places that are spread over the whole value.
  const places = 100;
  for (let i = 0; i < places; i++) {
    const at = Math.floor(((((i * 37) % places) + 0.5) * own.length) / places);
    all.push(own.slice(0, at), `${own.slice(0, at)}${own[at] === "A" ? "B" : "A"}${own.slice(at + 1)}`);
  }
  return [...new Set(all)].filter((value) => value !== own).slice(0, 200);
}

describe.each(Object.entries({ messages, responses, chat: chatClient }))("%s", (_, client) => {
  test("200 invented, stolen and mangled values: none reaches the source, and no error says more than its API's does", async () => {
    const [own, stolen] = [await client.first(keys.alice), await client.first(keys.bob)];
    expect(own).toMatch(/^truewire\.2\./);
    expect((await client.next(own, keys.alice)).status).toBe(200);
    expect(client.hasArrived()).toBe(true);
    expect((await client.next(own, keys.bob)).status).toBe(200);
    expect(client.hasArrived()).toBe(false);
    const values = forgeries(own, stolen);
    expect(values).toHaveLength(200);
    const accepted: string[] = [];
    const refused: Reply[] = [];
    for (const value of values) {
      const reply = await client.next(value, keys.alice);
      if (reply.status !== 200) refused.push(reply);
      else if (client.hasArrived()) accepted.push(value);
    }
    expect(accepted).toEqual([]);
    expect(refused.filter(({ status }) => status !== 400)).toEqual([]);
    // An error of a value may name its place, and nothing of keys, codes, files or stacks.
    for (const { text } of refused) {
      expect(JSON.parse(text)).toMatchObject({ error: { type: "invalid_request_error" } });
      expect(text).not.toMatch(/hmac|sha-?256|seal|authenticat|\bat .*:\d+|node_modules|src\/|dist\//i);
    }
    for (const secret of secrets) {
      expect(refused.filter(({ text }) => text.includes(secret))).toEqual([]);
      expect(lines.filter((line) => line.includes(secret))).toEqual([]);
    }
    // The server still takes what is its own.
    expect((await client.next(own, keys.alice)).status).toBe(200);
    expect(client.hasArrived()).toBe(true);
  });
});
