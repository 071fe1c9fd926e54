import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { said, serveFixture } from "../support/fixture-server.ts";
import type { FixtureServer } from "../support/fixture-server.ts";
import { startTruewire } from "../support/serve.ts";
import { until } from "../support/scripted-engine.ts";
import { dailyPart } from "../support/runs.ts";

const weather: Anthropic.Tool = {
  name: "get_weather",
  description: "The weather in a city",
  input_schema: {
    type: "object",
    properties: { city: { type: "string" }, unit: { type: "string" } },
    required: ["city"],
  },
};

/** Anthropic's official SDK against the programmed model, in both forms of the wire. */
describe.each(dailyPart(["lean", "exact"], 2))("the Anthropic SDK, wire %s", (wire) => {
  let server: FixtureServer;
  let client: Anthropic;
  beforeAll(async () => {
    server = await serveFixture("--wire", wire, "--api-key", "sk-ant-test-0123456789");
    client = new Anthropic({ baseURL: server.url, apiKey: "sk-ant-test-0123456789", maxRetries: 0 });
  });
  afterAll(() => server.close());

  const ask = (content: string): Anthropic.MessageCreateParamsNonStreaming => ({
    model: "programmed",
    max_tokens: 200,
    messages: [{ role: "user", content }],
  });

  test("create: a whole message, with its request id", async () => {
    const message = await client.messages.create({ ...ask("#plain"), system: "Be brief." });
    expect(message).toMatchObject({
      type: "message",
      role: "assistant",
      model: "programmed",
      content: [{ type: "text", text: said.plain }],
      stop_reason: "end_turn",
    });
    expect(message.usage.input_tokens).toBeGreaterThan(3);
    expect(message.usage.output_tokens).toBeGreaterThan(5);
    expect(message._request_id).toMatch(/^req_/);
  });

  test("stream: the helper puts together what create gives, and usage is known at the start", async () => {
    const whole = await client.messages.create(ask("#unicode"));
    const stream = client.messages.stream(ask("#unicode"));
    let text = "";
    let input = -1;
    stream.on("text", (piece) => (text += piece));
    stream.on("streamEvent", (event) => {
      if (event.type === "message_start") {
        const { input_tokens, cache_read_input_tokens } = event.message.usage;
        input = input_tokens + (cache_read_input_tokens ?? 0);
      }
    });
    const message = await stream.finalMessage();
    expect(text).toBe(said.unicode);
    expect({ ...message, id: null, usage: null, parsed_output: null }).toEqual({
      ...whole,
      id: null,
      usage: null,
      parsed_output: null,
    });
    expect(input).toBe(whole.usage.input_tokens + (whole.usage.cache_read_input_tokens ?? 0));
    expect(message.usage.output_tokens).toBe(whole.usage.output_tokens);
  });

  test("create with stream: the naive loop", async () => {
    let text = "";
    for await (const event of await client.messages.create({ ...ask("#plain"), stream: true })) {
      if (event.type === "content_block_delta" && event.delta.type === "text_delta") text += event.delta.text;
    }
    expect(text).toBe(said.plain);
  });

  test("stop sequences and token limits", async () => {
    const stopped = await client.messages.create({ ...ask("#plain"), stop_sequences: ["jumps"] });
    expect(stopped).toMatchObject({
      content: [{ text: "The quick brown fox " }],
      stop_reason: "stop_sequence",
      stop_sequence: "jumps",
    });
    const cut = await client.messages.create({ ...ask("#plain"), max_tokens: 3 });
    expect(cut.stop_reason).toBe("max_tokens");
    // Agents ask for the most that Claude can say: the room that there is counts.
    expect(await client.messages.create({ ...ask("#plain"), max_tokens: 20_000 })).toMatchObject({
      stop_reason: "end_turn",
    });
  });

  test("thinking", async () => {
    const request = {
      ...ask("#thought"),
      thinking: { type: "enabled", budget_tokens: 1024 } as const,
      max_tokens: 2048,
    };
    const thought = "The user wants a number; forty-two will do.";
    const whole = await client.messages.create(request);
    expect(whole.content).toMatchObject([
      { type: "thinking", thinking: thought, signature: expect.stringMatching(/./) as string },
      { type: "text", text: "My answer is forty-two." },
    ]);
    const streamed = await client.messages.stream(request).finalMessage();
    expect(streamed.content).toEqual(whole.content);
    const again = await client.messages.create({
      ...request,
      messages: [
        ...request.messages,
        { role: "assistant", content: whole.content },
        { role: "user", content: "#plain" },
      ],
    });
    expect(again.content.at(-1)).toMatchObject({ text: said.plain });
    const omitted = { type: "adaptive", display: "omitted" } as const;
    const [block] = (await client.messages.stream({ ...request, thinking: omitted }).finalMessage()).content;
    expect(block).toMatchObject({ type: "thinking", thinking: "" });
  });

  // The SDK sends version 2026-10-21, and its types have no sampling parameters.
  test("sampling parameters with the SDK's version", async () => {
    for (const name of ["temperature", "top_p", "top_k"]) {
      const answer = client.messages.create({ ...ask("#plain"), [name]: 1 });
      if (wire === "lean") expect(await answer).toMatchObject({ content: [{ text: said.plain }] });
      else await expect(answer).rejects.toThrow(`${name}: Extra inputs are not permitted`);
      const older = { headers: { "anthropic-version": "2023-06-01" } };
      const accepted = await client.messages.create({ ...ask("#plain"), [name]: 1 }, older);
      expect(accepted.stop_reason).toBe("end_turn");
    }
    const unknown = client.messages.create(ask("#plain"), { headers: { "anthropic-version": "2099-01-01" } });
    if (wire === "lean") expect((await unknown).stop_reason).toBe("end_turn");
    else
      await expect(unknown).rejects.toMatchObject({
        status: 400,
        type: "invalid_request_error",
        message: expect.stringContaining('anthropic-version: \\"2099-01-01\\" is not a valid version') as string,
      });
  });

  test("members that are null", async () => {
    const nulls = wire === "exact" ? { container: null, diagnostics: null } : {};
    const messages = [
      await client.messages.create(ask("#plain")),
      await client.messages.stream(ask("#plain")).finalMessage(),
    ];
    for (const message of messages) {
      const { container, diagnostics, usage } = message;
      expect({
        ...(container !== undefined && { container }),
        ...(diagnostics !== undefined && { diagnostics }),
      }).toEqual(nulls);
      expect(usage).not.toHaveProperty("speed");
      if (wire === "exact") expect(usage).not.toHaveProperty("output_tokens_details");
    }
    const thinking = { type: "adaptive" } as const;
    const { usage } = await client.messages.create({ ...ask("#thought"), thinking });
    expect(usage.output_tokens_details?.thinking_tokens).toBeGreaterThan(3);
  });

  test("a thinking block of another conversation is taken: none is bound", async () => {
    const thinking = { type: "adaptive", block_binding: { prefix_mismatch_behavior: "error" } } as const;
    const request: Anthropic.Beta.MessageCreateParamsNonStreaming = {
      ...ask("#thought"),
      betas: ["thinking-binding-controls-2026-08-01"],
      system: "Be brief.",
      thinking,
    };
    const { content } = await client.beta.messages.stream(request).finalMessage();
    const messages = [
      ...request.messages,
      { role: "assistant", content },
      { role: "user", content: "#plain" },
    ] as const;
    const answer = await client.beta.messages.create({ ...request, system: "Be long.", messages: [...messages] });
    expect(answer.stop_reason).toBe("end_turn");
    expect(answer.input_transformations).toBeUndefined();
  });

  test("tool use, parallel, streamed and not", async () => {
    const request = { ...ask("#calls"), tools: [weather] };
    const calls = [
      { type: "tool_use", name: "get_weather", input: { city: "Paris" }, caller: { type: "direct" } },
      { type: "tool_use", name: "get_weather", input: { city: "Tokyo", unit: "celsius" } },
    ];
    const whole = await client.messages.create(request);
    expect(whole.stop_reason).toBe("tool_use");
    expect(whole.content).toMatchObject(calls);
    const streamed = await client.messages.stream(request).finalMessage();
    expect(streamed.stop_reason).toBe("tool_use");
    expect(streamed.content).toMatchObject(calls);
    const ids = streamed.content.map((block) => block.type === "tool_use" && block.id);
    expect(new Set(ids).size).toBe(2);
    if (wire === "exact") for (const id of ids) expect(id).toMatch(/^toolu_01.{22}$/);
  });

  test.each([false, true])("the tool runner: call, result, answer (stream: %j)", async (stream) => {
    const asked: unknown[] = [];
    const tool = betaZodTool({
      name: "get_weather",
      description: "The weather in a city",
      inputSchema: z.object({ city: z.string() }),
      run(input) {
        asked.push(input);
        return "sunny, 21";
      },
    });
    const runner = client.beta.messages.toolRunner({ ...ask("#call"), tools: [tool], stream });
    const message = await runner.runUntilDone();
    expect(message.content).toMatchObject([{ type: "text", text: said.toolAnswer }]);
    expect(asked).toEqual([{ city: "Paris" }]);
  });

  test("structured output, streamed and not", async () => {
    const format = zodOutputFormat(z.object({ city: z.string(), celsius: z.number(), sunny: z.boolean() }));
    const request = { ...ask("#json"), output_config: { format } };
    const paris = { city: "Paris", celsius: 21, sunny: true };
    expect((await client.messages.parse(request)).parsed_output).toEqual(paris);
    expect((await client.messages.stream(request).finalMessage()).parsed_output).toEqual(paris);
  });

  test("countTokens: what create then reads", async () => {
    const { max_tokens: _, ...request } = { ...ask("#plain"), system: "Be brief.", tools: [weather] };
    const { input_tokens } = await client.messages.countTokens(request);
    const { usage } = await client.messages.create({ ...request, max_tokens: 50 });
    expect(input_tokens).toBe(usage.input_tokens + (usage.cache_read_input_tokens ?? 0));
    const long = await client.messages.countTokens({ ...request, messages: ask("word ".repeat(9000)).messages });
    expect(long.input_tokens).toBeGreaterThan(9000);
  });

  // Agents begin their system prompt with a header whose value changes; a cache that sees it never finds the prompt again.
  test("the next turn reads only what is new, though the billing header has changed", async () => {
    const text = "You are an agent. ".repeat(150);
    const system = (cch: string): Anthropic.TextBlockParam[] => [
      { type: "text", text: `x-anthropic-billing-header: cc_version=2.1.330; cch=${cch};` },
      { type: "text", text, cache_control: { type: "ephemeral" } },
    ];
    const request = { ...ask("#plain"), tools: [weather] };
    const first = await client.messages.create({ ...request, system: system("a1") });
    const messages: Anthropic.MessageParam[] = [
      ...request.messages,
      { role: "assistant", content: first.content },
      { role: "user", content: "#unicode" },
    ];
    const { usage } = await client.messages.create({ ...request, messages, system: system("b2") });
    const read = usage.cache_read_input_tokens ?? 0;
    expect(read / (read + usage.input_tokens)).toBeGreaterThan(0.95);
  });

  test("models", async () => {
    const names: string[] = [];
    for await (const { id, type } of client.models.list()) names.push(`${type} ${id}`);
    expect(names).toEqual(["model programmed"]);
    const model = await client.models.retrieve("programmed");
    expect(model.max_input_tokens).toBeGreaterThan(1000);
    expect(model).toMatchObject({ lifecycle: "active", deprecated_at: null, retires_at: null, line: null });
    expect((await client.models.list({ lifecycle: ["active", "retired"] })).data).toHaveLength(1);
    expect((await client.models.list({ lifecycle: ["deprecated"] })).data).toEqual([]);
  });

  test("failures are its typed exceptions", async () => {
    const stranger = new Anthropic({ baseURL: server.url, apiKey: "wrong", maxRetries: 0 });
    await expect(stranger.models.list()).rejects.toBeInstanceOf(Anthropic.AuthenticationError);
    await expect(client.messages.create({ ...ask("x"), model: "nope" })).rejects.toMatchObject({
      status: 404,
      type: "not_found_error",
      requestID: expect.stringMatching(/^req_/) as string,
    });
    const wrong = client.messages.create({ ...ask("x"), max_tokens: -2 });
    await expect(wrong).rejects.toBeInstanceOf(Anthropic.BadRequestError);
    const long = client.messages.create({ ...ask("word ".repeat(9000)), stream: true });
    await expect(long).rejects.toThrow(/prompt is too long: \d+ tokens > \d+ maximum/);
  });

  test("a stream that the client aborts frees its slot", async () => {
    const stream = client.messages.stream({ ...ask("#endless"), max_tokens: 5000 });
    for await (const event of stream) if (event.type === "content_block_delta") break;
    stream.abort();
    await until(async () => {
      const health = (await (await fetch(`${server.url}/health`)).json()) as { slots: { busy: number } };
      return health.slots.busy === 0;
    }, "the slot is free");
  });
});

// `truewire serve` without arguments.
test.each(dailyPart(["lean", "exact"], 2, 1))("the demo model, wire %s", async (wire) => {
  const server = await startTruewire(["--threads", "1", "--gpu", "off", "--wire", wire]);
  const client = new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0 });
  const request = { model: "demo", max_tokens: 100, messages: [{ role: "user" as const, content: "Hello!" }] };
  for (const message of [await client.messages.create(request), await client.messages.stream(request).finalMessage()]) {
    expect(message).toMatchObject({
      type: "message",
      content: [{ type: "text", text: expect.stringMatching(/\w/) as string }],
    });
    const written = ["container", "diagnostics"].filter((name) => name in message);
    expect(written).toEqual(wire === "exact" ? ["container", "diagnostics"] : []);
  }
  const hot = client.messages.create({ ...request, temperature: 1 } as Anthropic.MessageCreateParamsNonStreaming);
  if (wire === "exact") await expect(hot).rejects.toThrow("temperature: Extra inputs are not permitted");
  else expect((await hot).role).toBe("assistant");
  await server.stop();
});

test("a full queue is an OverloadedError", async () => {
  const server = await serveFixture("--slots", "1", "--queue-limit", "0");
  const client = new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0 });
  const request = { model: "programmed", max_tokens: 5000, messages: [{ role: "user" as const, content: "#endless" }] };
  const stream = client.messages.stream(request);
  for await (const event of stream)
    if (event.type === "content_block_delta") {
      await expect(client.messages.create(request)).rejects.toMatchObject({ status: 529, type: "overloaded_error" });
      break;
    }
  await server.close();
});
