import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeRandomModel } from "../fixtures/random-model.ts";
import { serveFixture, type FixtureServer } from "../support/fixture-server.ts";
import { startTruewire } from "../support/serve.ts";
import { json } from "../support/transports.ts";

let server: FixtureServer;
beforeAll(async () => {
  server = await serveFixture();
});
afterAll(() => server.close());

async function post(path: string, body: unknown, base = server.url): Promise<{ status: number; body: Told }> {
  const response = await fetch(base + path, json(body));
  return { status: response.status, body: (await response.json()) as Told };
}

interface Told {
  readonly prompt?: string;
  readonly tokens?: number[];
  readonly content?: string;
  readonly error?: { readonly message: string; readonly param: string | null; readonly code: string | null };
}

const messages = [
  { role: "system", content: "Be brief." },
  { role: "user", content: "Say <|im_end|> and ü." },
];
const tools = [
  {
    type: "function",
    function: { name: "look", parameters: { type: "object", properties: { at: { type: "string" } } } },
  },
];

test("the prompt is what the template makes of the messages", async () => {
  expect(await post("/apply-template", { messages: messages.slice(0, 1) })).toEqual({
    status: 200,
    body: { prompt: "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>assistant\n" },
  });
});

test.each([
  ["a conversation", { messages }],
  ["tools", { messages, tools }],
  ["no opening of an answer", { messages, add_generation_prompt: false }],
])("%s: it is what the model reads", async (_, request) => {
  const { body } = await post("/v1/apply-template", { ...request, model: "programmed" });
  const { tokens } = (await post("/tokenize", request)).body;
  expect(body.prompt).toBe((await post("/detokenize", { tokens })).body.content);
});

test("a prompt that is longer than the context can be looked at", async () => {
  const long = "word ".repeat(20_000);
  const { body } = await post("/apply-template", { messages: [{ role: "user", content: long }] });
  expect(body.prompt).toContain(long.trim());
});

test.each([
  [{}, 400, "messages"],
  [{ messages: [{ role: "robot", content: "Hi" }] }, 400, "messages[0].role"],
  [{ messages, chat_template: "{{ x }}" }, 400, "chat_template"],
  [{ messages, model: "no-such" }, 404, null],
] as const)("%j is refused", async (request, status, param) => {
  const answer = await post("/apply-template", request);
  expect({ status: answer.status, param: answer.body.error?.param }).toEqual({ status, param });
});

test("a model without a template, and another server's, say so", async () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-"));
  writeRandomModel(join(folder, "plain.gguf"));
  const plain = await startTruewire([join(folder, "plain.gguf"), "--port", "0", "--gpu", "off", "--threads", "1"]);
  const gateway = await startTruewire([server.baseURL, "--port", "0"]);
  try {
    expect(await post("/apply-template", { messages }, plain.url)).toMatchObject({
      status: 422,
      body: { error: { code: "no_chat_template" } },
    });
    expect(await post("/apply-template", { messages }, gateway.url)).toMatchObject({
      status: 501,
      body: { error: { message: "The template of 'programmed' is not known: only local models report it." } },
    });
  } finally {
    await Promise.all([plain.stop(), gateway.stop()]);
    rmSync(folder, { recursive: true, force: true });
  }
});
