import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { answerOf, standardScripts } from "../fixtures/scripts.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";

/** After "</think>", the programmed model says its greeting. */
const text = answerOf(standardScripts.greeting);
const folder = mkdtempSync(join(tmpdir(), "truewire-control-"));
const path = join(folder, "local.gguf");
let upstream: ScriptedServer;

beforeAll(async () => {
  const ponder = { say: ["<thi", "nk>", "Let me see. ", "Or not? "], afterwards: "repeat" } as const;
  writeProgrammedModel(path, { scripts: { ...standardScripts, ponder }, contextLength: 32_768 });
  // It never ends its answer.
  upstream = await startScripted((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const choices = [{ index: 0, delta: { reasoning_content: "Hm" }, finish_reason: null }];
    const chunk = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  });
});
afterAll(async () => {
  await upstream?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function start(config: object = {}): Promise<RunningTruewire> {
  const file = join(folder, `${Math.random()}.json`);
  const local = { kind: "local", path, contextSize: 32_768, slots: 2, threads: 1, gpu: "off", loopGuard: "off" };
  const models = [local, { kind: "upstream", url: upstream.url, api: "chat", models: { far: "m" } }];
  writeFileSync(file, JSON.stringify({ models, ...config }));
  return startTruewire(["--config", file]);
}

interface Streamed {
  readonly requestId: string;
  /** The text so far. */
  readonly first: string;
  /** Reads to the end. */
  rest(): Promise<string>;
  leave(): Promise<void>;
}

const hashOf = (key: string): string => `sha256:${createHash("sha256").update(key).digest("hex")}`;

const headersOf = (key?: string) => ({
  "content-type": "application/json",
  ...(key !== undefined && { authorization: `Bearer ${key}` }),
});

/** Begins a stream, and reads it until the first reasoning. */
async function begin(server: RunningTruewire, api: string, body: object, key?: string): Promise<Streamed> {
  const response = await fetch(`${server.url}/v1/${api}`, {
    method: "POST",
    headers: headersOf(key),
    body: JSON.stringify({ model: "local", stream: true, ...body }),
  });
  expect(response.status).toBe(200);
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  let first = "";
  while (!/see|Hm|reasoning_text\.delta|thinking_delta/.test(first)) first += (await reader.read()).value ?? "";
  return {
    requestId: response.headers.get("x-request-id") ?? "",
    first,
    async rest() {
      let all = first;
      for (let step = await reader.read(); !step.done; step = await reader.read()) all += step.value;
      return all;
    },
    leave: () => reader.cancel(),
  };
}

async function control(server: RunningTruewire, body: unknown, { api = "chat/completions", key = "" } = {}) {
  const response = await fetch(`${server.url}/v1/${api}/control`, {
    method: "POST",
    headers: headersOf(key === "" ? undefined : key),
    body: JSON.stringify(body),
  });
  return { status: response.status, answer: (await response.json()) as { error?: { message: string; type: string } } };
}

const ponder = { messages: [{ role: "user", content: "#ponder" }] };
const action = "reasoning_end";

/** The text and the reasoning of a chat stream, and its finish reason. */
function chatOf(stream: string): { reasoning: string; content: string; finish: string | null } {
  const answer = { reasoning: "", content: "", finish: null as string | null };
  for (const [, data = ""] of stream.matchAll(/^data: (\{.*\})$/gm)) {
    const { choices } = JSON.parse(data) as {
      choices: { delta: { content?: string; reasoning_content?: string }; finish_reason: string | null }[];
    };
    for (const { delta, finish_reason: finish } of choices) {
      answer.reasoning += delta.reasoning_content ?? "";
      answer.content += delta.content ?? "";
      answer.finish ??= finish;
    }
  }
  return answer;
}

const apis = [
  ["chat/completions", ponder, /"id":"(chatcmpl-\w+)"/],
  ["responses", { input: "#ponder" }, /"id":"(resp_\w+)"/],
  ["messages", { ...ponder, max_tokens: 32_000 }, /"id":"(msg_\w+)"/],
] as const;

describe("a server with local models and upstreams", () => {
  let server: RunningTruewire;
  beforeAll(async () => {
    server = await start();
  });
  afterAll(() => server?.stop());

  test.each(apis)("%s: the reasoning ends, and the model goes on with the text", async (api, body, pattern) => {
    for (const named of ["answer", "request"]) {
      const stream = await begin(server, api, body);
      const id = named === "request" ? stream.requestId : (pattern.exec(stream.first)?.[1] ?? "");
      expect(await control(server, { id, action }, { api })).toEqual({ status: 200, answer: { success: true } });
      const all = await stream.rest();
      expect(all).toContain("programmed");
      if (api === "chat/completions") {
        const { reasoning, content, finish } = chatOf(all);
        expect([content.trim(), finish]).toEqual([text, "stop"]);
        expect(reasoning).toMatch(/^Let me see\. /);
        expect(reasoning).not.toContain("</think");
      }
      // The answer has ended.
      expect(await control(server, { id, action }, { api })).toMatchObject({ status: 404 });
    }
  });

  test("is refused for an answer that is not reasoning", async () => {
    const body = { messages: [{ role: "user", content: "#endless" }] };
    const stream = await fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: headersOf(),
      body: JSON.stringify({ model: "local", stream: true, ...body }),
    });
    const id = stream.headers.get("x-request-id");
    expect(await control(server, { id, action })).toMatchObject({
      status: 409,
      answer: { error: { message: expect.stringContaining("not reasoning") } },
    });
    await stream.body?.cancel();
  });

  test("is refused for an upstream, in the words of the API that was asked", async () => {
    const stream = await begin(server, "chat/completions", { model: "far", ...ponder });
    const refused = await control(server, { id: stream.requestId, action }, { api: "messages" });
    expect(refused).toMatchObject({ status: 501, answer: { type: "error", error: { type: "api_error" } } });
    await stream.leave();
  });

  test.each([
    [{ action }, 400, "Missing 'id'"],
    [{ id: "chatcmpl-unknown", action }, 404, "No answer with this id"],
    [{ id: "__proto__", action }, 404, "No answer with this id"],
    [{ id: "x", action: "stop" }, 400, '"reasoning_end"'],
    [{ id: { toString: 1 }, action }, 400, "Missing 'id'"],
    [[], 400, ""],
  ])("%j is refused", async (body, status, message) => {
    const refused = await control(server, body);
    expect(refused.status).toBe(status);
    expect(refused.answer.error?.message).toContain(message);
  });
});

test("only the key of the request may end its reasoning", async () => {
  const keys = [
    { name: "ann", hash: hashOf("key-of-ann-1") },
    { name: "ben", hash: hashOf("key-of-ben-1") },
  ];
  const server = await start({ keys });
  try {
    const stream = await begin(server, "chat/completions", ponder, "key-of-ann-1");
    const body = { id: stream.requestId, action };
    expect(await control(server, body)).toMatchObject({ status: 401 });
    expect(await control(server, body, { key: "key-of-ben-1" })).toMatchObject({ status: 404 });
    expect(await control(server, body, { key: "key-of-ann-1" })).toMatchObject({ status: 200 });
    expect(chatOf(await stream.rest()).content.trim()).toBe(text);
  } finally {
    await server.stop();
  }
});
