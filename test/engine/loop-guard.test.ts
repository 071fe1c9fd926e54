import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { standardScripts } from "../fixtures/scripts.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { json } from "../support/transports.ts";
import { startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";

// A model that repeats a sentence filled its context with it, or the whole token limit of an upstream.

const pieces = ["Wait, let me think", " about this", " again from", " the very beginning", " of the question. "];
const sentence = pieces.join("");
const maxTokens = 3000;
const folder = mkdtempSync(join(tmpdir(), "truewire-loops-"));
const path = join(folder, "local.gguf");
const sizes = ["--context-size", "4096", "--slots", "2", "--threads", "1", "--gpu", "off"];
let local: RunningTruewire;

beforeAll(async () => {
  const scripts = { ...standardScripts, loop: { say: pieces, afterwards: "repeat" } } as const;
  writeProgrammedModel(path, { scripts, contextLength: 4096 });
  local = await startTruewire([path, ...sizes]);
});
afterAll(async () => {
  await local?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const user = (content: string) => ({ messages: [{ role: "user", content }] });

interface ChatAnswer {
  readonly choices: readonly { readonly finish_reason: string; readonly message: { readonly content: string } }[];
  readonly usage: { readonly completion_tokens: number };
}

async function ask<T>(url: string, api: string, body: object): Promise<T> {
  const response = await fetch(`${url}/v1/${api}`, json(body));
  expect(response.status).toBe(200);
  return (await response.json()) as T;
}

describe("an answer of a local model that repeats a sentence", () => {
  test("ends with the finish reason length, and counts its tokens", async () => {
    const chat = { model: "local", max_tokens: maxTokens, ...user("#loop") };
    const { choices, usage } = await ask<ChatAnswer>(local.url, "chat/completions", chat);
    const [choice] = choices;
    expect(choice?.finish_reason).toBe("length");
    expect(choice?.message.content.length).toBeGreaterThan(4096);
    expect(choice?.message.content.length).toBeLessThan(4096 + 2 * 1024);
    expect(usage.completion_tokens).toBeLessThan(maxTokens / 2);
    await expect.poll(() => `${local.stdout()}${local.stderr()}`).toMatch(/loopGuard: off turns this off/);
    await expect.poll(() => `${local.stdout()}${local.stderr()}`).toMatch(/"loop":"the answer repeated itself"/);
    expect(`${local.stdout()}${local.stderr()}`).not.toContain(sentence);
    const metrics = await (await fetch(`${local.url}/metrics`)).text();
    expect(metrics).toMatch(/^truewire_loops_total\{gen_ai_request_model="local"\} 1$/m);
  });

  test("Responses: incomplete, because of max_output_tokens; Messages: max_tokens", async () => {
    const response = { model: "local", input: "#loop", max_output_tokens: maxTokens };
    expect(await ask(local.url, "responses", response)).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
    });
    const message = { model: "local", max_tokens: maxTokens, ...user("#loop") };
    expect(await ask(local.url, "messages", message)).toMatchObject({ stop_reason: "max_tokens" });
  });

  test("of several choices, each ends alone", async () => {
    const chat = { model: "local", n: 2, max_tokens: maxTokens, ...user("#loop") };
    const { choices } = await ask<ChatAnswer>(local.url, "chat/completions", chat);
    expect(choices.map((choice) => choice.finish_reason)).toEqual(["length", "length"]);
    for (const { message } of choices) expect(message.content.length).toBeLessThan(4096 + 2 * 1024);
  });

  test("ignore_eos, and loopGuard: off, leave it alone", async () => {
    const chat = { model: "local", max_tokens: 1500, ...user("#loop") };
    const ignored = await ask<ChatAnswer>(local.url, "chat/completions", { ...chat, ignore_eos: true });
    expect(ignored.usage.completion_tokens).toBe(1500);
    const off = await startTruewire([path, ...sizes, "--loop-guard", "off"]);
    try {
      const { usage } = await ask<ChatAnswer>(off.url, "chat/completions", chat);
      expect(usage.completion_tokens).toBe(1500);
    } finally {
      await off.stop();
    }
  });
});

describe("an upstream that repeats a sentence", () => {
  let upstream: ScriptedServer;
  let server: TruewireServer;
  let cancelled = 0;
  beforeAll(async () => {
    upstream = await startScripted((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      let sent = 0;
      const next = (): void => {
        if (response.destroyed || sent++ >= 400) return void response.end("data: [DONE]\n\n");
        const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: "m" };
        const choices = [{ index: 0, delta: { content: sentence }, finish_reason: null }];
        response.write(`data: ${JSON.stringify({ ...chunk, choices })}\n\n`);
        setImmediate(next);
      };
      response.on("close", () => cancelled++);
      next();
    });
    const of = (name: string, loopGuard?: "on") => ({
      kind: "upstream" as const,
      url: upstream.url,
      api: "chat" as const,
      models: { [name]: "m" },
      ...(loopGuard && { loopGuard }),
    });
    server = await createServer({ port: 0, logLevel: "silent", models: [of("guarded", "on"), of("free")] });
  });
  afterAll(async () => {
    await server?.close(0);
    await upstream?.close();
  });

  async function lengthOf(model: string): Promise<{ length: number; text: string }> {
    const response = await fetch(`${server.url}/v1/chat/completions`, json({ model, stream: true, ...user("Hi") }));
    const text = await response.text();
    return { length: text.split("let me think").length - 1, text };
  }

  test("with loopGuard: on, the answer ends with length and the source is cancelled", async () => {
    const { length, text } = await lengthOf("guarded");
    expect(length).toBeLessThan(100);
    expect(text).toContain('"finish_reason":"length"');
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    await expect.poll(() => cancelled).toBe(1);
  });

  test("by default, it is passed on", async () => {
    expect((await lengthOf("free")).length).toBe(400);
  });
});
