import Anthropic from "@anthropic-ai/sdk";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { randomPicture, writeRandomVision } from "../fixtures/random-vision.ts";
import { runTruewire, startTruewire, type RunningTruewire } from "../support/serve.ts";
import { mtmdFolder, mtmdSource } from "./mtmd-oracle.ts";

const data = randomPicture(96, 64).toString("base64");
const url = `data:image/png;base64,${data}`;
/** `<|im_start|>user\nWhat?`, the image, `<|im_end|>\n<|im_start|>assistant\n`, of which bytes are tokens. */
const tokens = 1 + "user\nWhat?".length + 18 + 1 + 1 + 1 + "assistant\n".length;

let folder: string;
let server: RunningTruewire;
const libraries = mtmdFolder === undefined ? [] : ["--llama-libraries", mtmdFolder];

describe.skipIf(mtmdSource === null)("images in every API", () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "truewire-images-"));
    const { model } = writeRandomVision(folder, "gemma3");
    server = await startTruewire([`m=${model}`, "--threads", "1", "--context-size", "2048", ...libraries]);
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("Chat and Responses, by OpenAI's SDK", async () => {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none" });
    const chat = await client.chat.completions.create({
      model: "m",
      max_tokens: 4,
      temperature: 0,
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What?" },
            { type: "image_url", image_url: { url } },
          ],
        },
      ],
    });
    expect(chat.usage?.prompt_tokens).toBe(tokens);
    const response = await client.responses.create({
      model: "m",
      max_output_tokens: 16,
      temperature: 0,
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "What?" },
            { type: "input_image", image_url: url, detail: "auto" },
          ],
        },
      ],
    });
    expect(response.usage?.input_tokens).toBe(tokens);
    expect(response.usage?.input_tokens_details.cached_tokens).toBe(tokens - 1);
    expect(response.output_text.startsWith(chat.choices[0]?.message.content ?? "?")).toBe(true);
  });

  test("Messages with its count of tokens, and an image in the result of a tool", async () => {
    const client = new Anthropic({ baseURL: server.url, apiKey: "none" });
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data } } as const;
    const messages = [{ role: "user" as const, content: [{ type: "text" as const, text: "What?" }, image] }];
    expect(await client.messages.countTokens({ model: "m", messages })).toEqual({ input_tokens: tokens });
    const { usage } = await client.messages.create({ model: "m", max_tokens: 4, messages });
    expect(usage.input_tokens + (usage.cache_read_input_tokens ?? 0)).toBe(tokens);
    const withResult = (content: [] | [typeof image]): Parameters<typeof client.messages.countTokens>[0] => ({
      model: "m",
      tools: [{ name: "look", input_schema: { type: "object" } }],
      messages: [
        { role: "user", content: "Look" },
        { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "look", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content }] },
      ],
    });
    const [without, with1] = [
      await client.messages.countTokens(withResult([])),
      await client.messages.countTokens(withResult([image])),
    ];
    expect(with1.input_tokens - without.input_tokens).toBe(18);
  });

  test("Ollama's images", async () => {
    const response = await fetch(`${server.url}/api/chat`, {
      method: "POST",
      body: JSON.stringify({
        model: "m",
        stream: false,
        options: { num_predict: 4, temperature: 0 },
        messages: [{ role: "user", content: "What?", images: [data] }],
      }),
    });
    expect(await response.json()).toMatchObject({ prompt_eval_count: tokens, done_reason: "length" });
  });

  test("an address of a private network is not downloaded from", async () => {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none" });
    const content = [{ type: "image_url" as const, image_url: { url: `${server.url}/favicon.ico` } }];
    await expect(
      client.chat.completions.create({ model: "m", messages: [{ role: "user", content }] }),
    ).rejects.toMatchObject({
      status: 400,
      code: "invalid_image_url",
      param: "messages[0].content[0]",
      message: "400 The image cannot be read: 127.0.0.1 is not a public address.",
    });
  });
});

describe.skipIf(mtmdSource === null)("in profile exact", () => {
  test("an image of a type that is not read is refused in the words of each API", async () => {
    const own = mkdtempSync(join(tmpdir(), "truewire-images-exact-"));
    const { model } = writeRandomVision(own, "llava");
    const exact = await startTruewire([`m=${model}`, "--wire", "exact", "--threads", "1", ...libraries]);
    const vector = Buffer.from("<svg></svg>").toString("base64");
    const refusal = async (path: string, body: object): Promise<unknown> => {
      const response = await fetch(`${exact.url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": "none" },
        body: JSON.stringify({ model: "m", ...body }),
      });
      expect(response.status).toBe(400);
      return ((await response.json()) as { error: unknown }).error;
    };
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${vector}` } };
    const source = { type: "base64", media_type: "image/png", data: vector };
    const ask = (content: readonly unknown[]) => ({ messages: [{ role: "user", content }] });
    expect(await refusal("/v1/chat/completions", ask([image]))).toMatchObject({ code: "invalid_image_format" });
    const part = { type: "input_image", image_url: image.image_url.url };
    expect(await refusal("/v1/responses", { input: [{ role: "user", content: [part] }] })).toMatchObject({
      message: expect.stringContaining("The image data you provided does not represent a valid image."),
      param: "input",
      code: "invalid_value",
    });
    const block = { type: "image", source };
    expect(await refusal("/v1/messages", { max_tokens: 9, ...ask([{ type: "text", text: "?" }, block]) })).toEqual({
      type: "invalid_request_error",
      message: "Could not process image",
    });
    await exact.stop();
    rmSync(own, { recursive: true, force: true });
  });
});

test("a folder without the libraries of llama.cpp is refused with one sentence", async () => {
  const empty = mkdtempSync(join(tmpdir(), "truewire-empty-"));
  const { model } = writeRandomVision(empty, "llava");
  const { code, stderr } = await runTruewire(["serve", model, "--port", "0", "--llama-libraries", empty]);
  rmSync(empty, { recursive: true, force: true });
  expect(code).toBe(1);
  expect(stderr).toContain(
    `The libraries of llama.cpp in ${empty} cannot be used: ${empty} holds no library of the name ggml-base. ` +
      "--llama-libraries needs a folder with a build or a release of llama.cpp 0.5.0",
  );
});
