import OpenAI from "openai";
import type { ChatCompletion } from "openai/resources/chat/completions";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { exact, lean } from "../../src/wire/apis/profile.ts";
import { repairCapture } from "../../src/judge/check/repair.ts";
import { captureOf, doubles, startDoubles } from "./double-server.ts";
import type { Double, DoubleServer } from "./double-server.ts";
import { strictMessage } from "./strict-client.ts";

let upstream: DoubleServer;
let truewire: TruewireServer;
let client: OpenAI;

beforeAll(async () => {
  upstream = await startDoubles();
  const plain = doubles.filter(({ options }) => options.format === undefined).map(({ id }) => [id, id]);
  const formatted = doubles.filter(({ options }) => options.format === "auto").map(({ id }) => [id, id]);
  const shared = { kind: "upstream", url: upstream.url, retries: 0 } as const;
  truewire = await createServer({
    port: 0,
    logLevel: "silent",
    models: [
      { ...shared, name: "plain", models: Object.fromEntries(plain) },
      { ...shared, name: "formatted", models: Object.fromEntries(formatted), toolFormat: "auto" },
    ],
  });
  client = new OpenAI({ baseURL: `${truewire.url}/v1`, apiKey: "none", maxRetries: 0 });
});

afterAll(async () => {
  await truewire.close(0);
  await upstream.close();
});

const tools = ["get_weather", "get_time", "list_files", "now", "add", "search"].map((name) => ({
  type: "function" as const,
  function: { name, parameters: { type: "object", properties: {} } },
}));

function requestOf(double: Double): Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, "stream"> {
  return {
    model: double.id,
    messages: [{ role: "user", content: "Hi" }],
    ...(double.expect.calls && { tools }),
    ...(double.choices > 1 && { n: double.choices }),
  };
}

/** What a client has in the end, in the words of `Double.expect`. */
function told(message: ChatCompletion): Double["expect"] {
  const choice = message.choices[0];
  const reasoning = (choice?.message as { reasoning_content?: string } | undefined)?.reasoning_content;
  const calls = choice?.message.tool_calls ?? [];
  return {
    text: choice?.message.content ?? null,
    ...(typeof reasoning === "string" && { reasoning }),
    ...(typeof choice?.message.refusal === "string" && { refusal: choice.message.refusal }),
    ...(calls.length > 0 && {
      calls: calls.map((call) => (call.type === "function" ? [call.function.name, call.function.arguments] : ["", ""])),
    }),
    ...(choice && { finish: choice.finish_reason }),
    ...(message.usage && { usage: [message.usage.prompt_tokens, message.usage.completion_tokens] }),
  };
}

const whole = doubles.filter(({ expect }) => expect.error === undefined);
const broken = doubles.filter(({ expect }) => expect.error !== undefined);
const titled = (list: readonly Double[]): [string, Double][] =>
  list.map((double) => [`${double.server}: ${double.shows}`, double]);

/** Clients read the usage without asking whether it is there: what the server has not counted is estimated. */
const estimated = { usage: [expect.any(Number), expect.any(Number)] };

describe("the official SDK's accumulator", () => {
  test.each(titled(whole))("%s, streamed", async (_, double) => {
    const stream = client.chat.completions.stream({ ...requestOf(double), stream_options: { include_usage: true } });
    // The accumulator throws for a missing role, index, id or finish reason. Of reasoning it keeps the last piece only.
    const message = told(await stream.finalChatCompletion());
    expect({ ...message, reasoning: undefined }).toEqual({ ...estimated, ...double.expect, reasoning: undefined });
  });

  test.each(titled(whole))("%s, not streamed", async (_, double) => {
    const { choices, ...rest } = await client.chat.completions.create(requestOf(double));
    expect(told({ choices, ...rest })).toEqual({ ...estimated, ...double.expect });
    expect(choices.map(({ index }) => index)).toEqual(Array.from({ length: double.choices }, (_, i) => i));
    expect(rest.id).toMatch(/^chatcmpl-/);
  });

  test.each(titled(broken))("%s, streamed", async (_, double) => {
    let text = "";
    const stream = client.chat.completions.stream(requestOf(double)).on("content", (delta) => (text += delta));
    const error: unknown = await stream.finalChatCompletion().catch((error: unknown) => error);
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect((error as InstanceType<typeof OpenAI.APIError>).message).toContain(double.expect.error);
    expect(text).toBe(double.expect.text ?? "");
    if (double.expect.status !== undefined) expect((error as { status?: number }).status).toBe(double.expect.status);
  });

  test.each(titled(broken))("%s, not streamed", async (_, double) => {
    const error: unknown = await client.chat.completions.create(requestOf(double)).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect((error as { status?: number }).status).toBeGreaterThanOrEqual(400);
  });
});

describe("a strict reader of our own: every rule of the wire, on the bytes", () => {
  test.each(titled(doubles))("%s", async (_, double) => {
    const response = await fetch(`${truewire.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...requestOf(double), stream: true }),
    });
    const body = await response.text();
    if (response.status !== 200) {
      expect(JSON.parse(body)).toMatchObject({
        error: { message: expect.stringContaining(double.expect.error ?? "") },
      });
      return;
    }
    const { text, reasoning, error } = strictMessage(body);
    expect(text).toBe(double.expect.text ?? "");
    expect(reasoning).toBe(double.expect.reasoning ?? "");
    expect(error !== null).toBe(double.expect.error !== undefined);
    // Usage that was not asked for is not sent.
    expect(body).not.toContain('"usage"');
  });
});

/** Types like "api_error" and "exceed_context_size_error", which OpenAI does not have, were passed on, and only some prompts were "too long". */
describe("refusals keep their status and words, in the words of each API", () => {
  const refusals = doubles.filter(({ expect }) => expect.type !== undefined);
  const ask = async (path: string, body: object): Promise<{ status: number; error: Record<string, unknown> }> => {
    const response = await fetch(`${truewire.url}/v1${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ stream: true, ...body }),
    });
    return { status: response.status, ...((await response.json()) as { error: Record<string, unknown> }) };
  };

  test.each(titled(refusals))("%s", async (_, double) => {
    const { error, status, type, code = null, tooLong } = double.expect;
    const message = expect.stringContaining(error ?? "") as unknown;
    const chat = await ask("/chat/completions", requestOf(double));
    expect(chat).toEqual({ status, error: { message, type, param: null, code } });
    const responses = await ask("/responses", { model: double.id, input: "Hi" });
    const param = code === null ? null : "input";
    expect(responses).toEqual({ status, error: { message, type, param, code } });
    const { messages, model } = requestOf(double);
    const anthropic = await ask("/messages", { model, messages, max_tokens: 10 });
    expect(anthropic.error["message"]).toEqual(tooLong === undefined ? message : `prompt is too long: ${tooLong}`);
  });
});

describe("the same through repair", () => {
  const streams = doubles.filter(({ type, options }) => type !== "application/json" && options.format === undefined);
  test.each(titled(streams))("%s", (_, double) => {
    for (const profile of [lean, exact]) {
      const { body, end } = repairCapture(captureOf(double), {
        profile,
        from: "chat",
        random: Math.random,
        now: 1_760_000_000,
      });
      const { text, reasoning, calls, finish, usage, error } = strictMessage(body, profile.name);
      const { expect: expected } = double;
      expect(text).toBe(expected.text ?? "");
      expect(error !== null).toBe(expected.error !== undefined);
      expect(end.kind === "done").toBe(expected.error === undefined);
      if (expected.error !== undefined) continue;
      expect({ reasoning, calls, finish, usage }).toEqual({
        reasoning: expected.reasoning ?? "",
        calls: expected.calls ?? [],
        finish: expected.finish,
        usage: expected.usage ?? null,
      });
      // What is exact stays as it is.
      const again = repairCapture(body, { profile, from: "chat", random: Math.random, now: 1_760_000_000 });
      expect(again.body.replaceAll(/"obfuscation":"\w*"/g, "")).toBe(body.replaceAll(/"obfuscation":"\w*"/g, ""));
      expect(again.repairs.filter(({ id }) => id !== "reasoning-field")).toEqual([]);
    }
  });

  test.each(titled(doubles.filter(({ body }) => body !== undefined)))("%s, as a JSON body", (_, double) => {
    if (double.options.format !== undefined) return;
    const { body } = repairCapture(double.body ?? "", { profile: lean, from: "auto", random: Math.random, now: 1 });
    expect(told(JSON.parse(body) as ChatCompletion)).toEqual(double.expect);
  });
});

test("requests reach the upstream as the client sent them, with usage asked for where the client asked", () => {
  expect(upstream.requests.length).toBeGreaterThan(0);
  const streamed = upstream.requests.filter(({ stream }) => stream === true);
  const withUsage = streamed.filter(({ stream_options: options }) => options !== undefined);
  expect(withUsage.every(({ stream_options: options }) => JSON.stringify(options) === '{"include_usage":true}')).toBe(
    true,
  );
  expect(withUsage.length).toBeGreaterThan(0);
  expect(streamed.length).toBeGreaterThan(withUsage.length);
});
