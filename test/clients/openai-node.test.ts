import OpenAI from "openai";
import type { RunnableToolFunctionWithParse } from "openai/lib/RunnableFunction";
import { zodResponseFormat } from "openai/helpers/zod";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { said, serveFixture } from "../support/fixture-server.ts";
import type { FixtureServer } from "../support/fixture-server.ts";
import { until } from "../support/scripted-engine.ts";

const weather: OpenAI.ChatCompletionTool = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, unit: { type: "string" } },
      required: ["city"],
    },
  },
};

/** The official SDK against the programmed model, in both forms of the wire. */
describe.each(["lean", "openai"])("the openai SDK, wire %s", (wire) => {
  let server: FixtureServer;
  let client: OpenAI;
  beforeAll(async () => {
    server = await serveFixture("--wire", wire, "--api-key", "sk-test-0123456789");
    client = new OpenAI({ baseURL: server.baseURL, apiKey: "sk-test-0123456789", maxRetries: 0 });
  });
  afterAll(() => server.close());

  const ask = (content: string): { model: string; messages: OpenAI.ChatCompletionMessageParam[] } => ({
    model: "programmed",
    messages: [{ role: "user", content }],
  });

  test("create: a whole answer, with its request id", async () => {
    const answer = await client.chat.completions.create(ask("#plain"));
    expect(answer.choices[0]).toMatchObject({
      index: 0,
      finish_reason: "stop",
      message: { role: "assistant", content: said.plain },
    });
    expect(answer.model).toBe("programmed");
    expect(answer.usage?.completion_tokens).toBeGreaterThan(5);
    expect(answer._request_id).toMatch(/^req_/);
  });

  test("create with stream: the naive loop over choices[0].delta.content", async () => {
    const stream = await client.chat.completions.create({ ...ask("#unicode"), stream: true });
    let text = "";
    for await (const chunk of stream) {
      expect(chunk.choices).toHaveLength(1);
      text += chunk.choices[0]?.delta.content ?? "";
    }
    expect(text).toBe(said.unicode);
  });

  test("stream: the strict accumulator gives the same message as create, with usage when asked (N5, W11)", async () => {
    const request = { ...ask("#plain"), logprobs: true, top_logprobs: 2 };
    const whole = await client.chat.completions.create(request);
    const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
    const final = await stream.finalChatCompletion();
    expect(final.choices[0]?.message.content).toBe(said.plain);
    expect(final.choices[0]?.finish_reason).toBe("stop");
    expect(final.choices[0]?.logprobs?.content).toEqual(whole.choices[0]?.logprobs?.content);
    expect(await stream.totalUsage()).toMatchObject({ completion_tokens: whole.usage?.completion_tokens });
  });

  test("several choices", async () => {
    const stream = client.chat.completions.stream({ ...ask("#plain"), n: 3 });
    const { choices } = await stream.finalChatCompletion();
    expect(choices.map(({ message }) => message.content)).toEqual([said.plain, said.plain, said.plain]);
  });

  test("stop strings and token limits", async () => {
    const stopped = await client.chat.completions.create({ ...ask("#plain"), stop: ["jumps"] });
    expect(stopped.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "The quick brown fox " } });
    const cut = await client.chat.completions.create({ ...ask("#plain"), max_completion_tokens: 3 });
    expect(cut.choices[0]?.finish_reason).toBe("length");
    expect(said.plain.startsWith(cut.choices[0]?.message.content ?? "?")).toBe(true);
  });

  test("tool calls, parallel ones, streamed and not", async () => {
    const request = { ...ask("#calls"), tools: [weather] };
    const calls = [
      { type: "function", function: { name: "get_weather", arguments: '{"city": "Paris"}' } },
      { type: "function", function: { name: "get_weather", arguments: '{"city": "Tokyo", "unit": "celsius"}' } },
    ];
    const whole = await client.chat.completions.create(request);
    expect(whole.choices[0]?.finish_reason).toBe("tool_calls");
    expect(whole.choices[0]?.message.tool_calls).toMatchObject(calls);
    const streamed = await client.chat.completions.stream(request).finalChatCompletion();
    expect(streamed.choices[0]?.finish_reason).toBe("tool_calls");
    expect(streamed.choices[0]?.message.tool_calls).toMatchObject(calls);
    for (const call of streamed.choices[0]?.message.tool_calls ?? []) expect(call.id).toMatch(/^call_[0-9A-Za-z]{24}$/);
  });

  test.each([false, true])("runTools: call, result, answer (stream: %j)", async (stream) => {
    const asked: unknown[] = [];
    const tool: RunnableToolFunctionWithParse<{ city: string }> = {
      type: "function",
      function: {
        name: "get_weather",
        description: "The weather in a city",
        parameters: { type: "object", properties: { city: { type: "string" } } },
        parse: (text: string) => JSON.parse(text) as { city: string },
        function: (input: { city: string }) => {
          asked.push(input);
          return "sunny, 21";
        },
      },
    };
    const runner = stream
      ? client.chat.completions.runTools({ ...ask("#call"), tools: [tool], stream: true })
      : client.chat.completions.runTools({ ...ask("#call"), tools: [tool] });
    expect(await runner.finalContent()).toBe(said.toolAnswer);
    expect(asked).toEqual([{ city: "Paris" }]);
  });

  test("structured output", async () => {
    const format = zodResponseFormat(
      z.object({ city: z.string(), celsius: z.number(), sunny: z.boolean() }),
      "weather",
    );
    const answer = await client.chat.completions.parse({ ...ask("#json"), response_format: format });
    expect(answer.choices[0]?.message.parsed).toEqual({ city: "Paris", celsius: 21, sunny: true });
  });

  test("legacy completions, streamed and not", async () => {
    const request = { model: "programmed", prompt: "<|script:plain|>" };
    const whole = await client.completions.create(request);
    expect(whole.choices[0]?.text).toBe(said.plain);
    let text = "";
    for await (const chunk of await client.completions.create({ ...request, stream: true }))
      text += chunk.choices[0]?.text;
    expect(text).toBe(said.plain);
  });

  test("models", async () => {
    const names: string[] = [];
    for await (const { id } of client.models.list()) names.push(id);
    expect(names).toEqual(["programmed"]);
    expect(await client.models.retrieve("programmed")).toMatchObject({ id: "programmed", object: "model" });
  });

  test("failures are its typed exceptions", async () => {
    const stranger = new OpenAI({ baseURL: server.baseURL, apiKey: "sk-wrong-0123456789", maxRetries: 0 });
    await expect(stranger.models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
    await expect(client.chat.completions.create({ ...ask("x"), model: "nope" })).rejects.toBeInstanceOf(
      OpenAI.NotFoundError,
    );
    await expect(client.models.retrieve("nope")).rejects.toBeInstanceOf(OpenAI.NotFoundError);
    const wrong = client.chat.completions.create({ ...ask("x"), n: 0 });
    await expect(wrong).rejects.toBeInstanceOf(OpenAI.BadRequestError);
    await expect(wrong).rejects.toMatchObject({ status: 400, param: "n", type: "invalid_request_error" });
    const long = client.chat.completions.create({ ...ask("word ".repeat(9000)), stream: true });
    await expect(long).rejects.toMatchObject({ status: 400, code: "context_length_exceeded" });
  });

  test("a stream that the client aborts frees its slot", async () => {
    const stream = await client.chat.completions.create({ ...ask("#endless"), stream: true });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    await until(async () => {
      const health = (await (await fetch(`${server.url}/health`)).json()) as { slots: { busy: number } };
      return health.slots.busy === 0;
    }, "the slot is free");
  });
});

test("a full queue is a RateLimitError that says when to come again", async () => {
  const server = await serveFixture("--slots", "1", "--queue-limit", "0");
  const client = new OpenAI({ baseURL: server.baseURL, apiKey: "none", maxRetries: 0 });
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "#endless" }];
  const stream = await client.chat.completions.create({ model: "programmed", messages, stream: true });
  for await (const chunk of stream)
    if (chunk.choices[0]?.delta.content) {
      const refused = client.chat.completions.create({ model: "programmed", messages });
      await expect(refused).rejects.toBeInstanceOf(OpenAI.RateLimitError);
      const { headers } = (await refused.catch((error: unknown) => error)) as InstanceType<
        typeof OpenAI.RateLimitError
      >;
      expect(Number(headers?.get("retry-after"))).toBeGreaterThan(0);
      break;
    }
  await server.close();
});
