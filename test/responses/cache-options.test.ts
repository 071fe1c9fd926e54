import { createServer as createHttpServer } from "node:http";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { closeAfterTest } from "../support/close-after-test.ts";
import { otherServers } from "../support/other-servers.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { startGateway } from "../upstream/gateway.ts";

// A request with `prewarm` was answered at length, and a local model's prompt was never processed without an answer.

type Options = OpenAI.Responses.ResponseCreateParamsNonStreaming;
/** Members that openai 6 does not declare. */
type Body = Omit<Options, "model" | "prompt_cache_options"> & { prompt_cache_options?: object; generate?: boolean };

const instructions = "Answer in one short sentence, and name the city that the question is about.";

describe.each(["lean", "exact"])("prompt_cache_options of a local model, wire %s", (wire) => {
  let server: RunningTruewire;
  let client: OpenAI;
  beforeAll(async () => {
    server = await startTruewire(["models/demo/demo.gguf", "--threads", "1", "--gpu", "off", "--wire", wire]);
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
  });
  afterAll(() => server.stop());

  const create = (body: Body): Promise<OpenAI.Responses.Response> =>
    client.responses.create({ model: "demo", ...body } as Options);

  test("prewarm processes the prompt and generates nothing", async () => {
    const prompt = { instructions, input: "How is the weather in Lisbon?" };
    const prepared = await create({ ...prompt, prompt_cache_options: { prewarm: true } });
    expect(prepared).toMatchObject({
      status: "completed",
      output: [],
      output_text: "",
      prompt_cache_options: { mode: "implicit", ttl: "30m" },
      usage: { output_tokens: 0, input_tokens_details: { cached_tokens: 0 } },
    });
    const { usage } = await create({ ...prompt, max_output_tokens: 16 });
    expect(usage?.input_tokens).toBe(prepared.usage?.input_tokens);
    // The last token is processed again: the answer begins after it.
    expect(usage?.input_tokens_details.cached_tokens).toBe((usage?.input_tokens ?? 0) - 1);
  });

  test("a stream of it has no item, and previous_response_id continues it", async () => {
    const stream = client.responses.stream({
      model: "demo",
      instructions,
      input: "I live in Oslo.",
      prompt_cache_options: { prewarm: true },
    } as Parameters<typeof client.responses.stream>[0]);
    const types: string[] = [];
    for await (const { type } of stream) types.push(type);
    expect(types).toEqual(["response.created", "response.in_progress", "response.completed"]);
    const { id } = await stream.finalResponse();
    const next = await create({ previous_response_id: id, input: "And you?", instructions, max_output_tokens: 16 });
    expect(next.usage?.input_tokens_details.cached_tokens).toBeGreaterThan(10);
    const items = await client.responses.inputItems.list(next.id);
    expect(items.data).toHaveLength(2);
  });

  test("by WebSocket, and with generate: false, whose answer counts nothing", async () => {
    const input = [{ role: "user" as const, content: "Which trains go to Porto?" }];
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`);
    const answer = (body: Body): Promise<OpenAI.Responses.Response> =>
      new Promise((resolve, reject) => {
        socket.on("message", (data: Buffer) => {
          const event = JSON.parse(data.toString()) as OpenAI.Responses.ResponseStreamEvent;
          if (event.type === "response.completed" || event.type === "response.incomplete") resolve(event.response);
          if (event.type === "error") reject(new Error(data.toString()));
        });
        socket.send(JSON.stringify({ type: "response.create", model: "demo", store: false, ...body }));
      });
    await new Promise((resolve) => socket.once("open", resolve));
    const prepared = await answer({ input, generate: false });
    expect(prepared).toMatchObject({ output: [], usage: { input_tokens: 0, output_tokens: 0 } });
    const again = await answer({ input, prompt_cache_options: { prewarm: true } });
    expect(again).toMatchObject({ output: [], usage: { output_tokens: 0 } });
    expect(again.usage?.input_tokens_details.cached_tokens).toBe((again.usage?.input_tokens ?? 0) - 1);
    socket.close();
  });

  test("ttl: exact takes OpenAI's values only", async () => {
    const asked = create({ input: "Hi", max_output_tokens: 16, prompt_cache_options: { ttl: "5m", mode: "explicit" } });
    if (wire === "lean") {
      expect(await asked).toMatchObject({ prompt_cache_options: { mode: "explicit", ttl: "30m" } });
      return;
    }
    await expect(asked).rejects.toMatchObject({
      status: 400,
      param: "prompt_cache_options.ttl",
      code: "invalid_value",
      message: "400 Invalid value: '5m'. Supported values are: '30m' and '12h'.",
    });
  });

  test("the members of 2026-09: absent when not sent, repeated when sent", async () => {
    const plain = await create({ input: "Hi", max_output_tokens: 16 });
    expect(plain).not.toHaveProperty("prompt_cache_options");
    expect(plain).not.toHaveProperty("image");
    const sent = { access_programs: { cyber: "standard" }, image: { context_compression: "auto" } };
    const full = await create({ input: "Hi", max_output_tokens: 16, ...sent } as Body);
    if (wire === "lean") {
      expect(full).not.toHaveProperty("access_programs");
      expect(full).not.toHaveProperty("image");
    } else {
      expect(plain).toMatchObject({ access_programs: null });
      expect(full).toMatchObject({
        access_programs: { cyber: "standard" },
        image: { context_compression: "disabled" },
      });
    }
  });
});

describe("prewarm over a server of another API", () => {
  const listening = otherServers();

  /** Serves an upstream that records the bodies that it gets, and answers each with `answer`. */
  async function over(api: "chat" | "messages", answer: object): Promise<{ client: OpenAI; bodies: object[] }> {
    const bodies: object[] = [];
    const upstream = createHttpServer((request, response) => {
      let text = "";
      request.on("data", (chunk: Buffer) => (text += chunk.toString()));
      request.on("end", () => {
        response.setHeader("content-type", "application/json");
        if (request.method === "GET") return response.end(JSON.stringify({ object: "list", data: [{ id: "m" }] }));
        bodies.push(JSON.parse(text) as object);
        return response.end(JSON.stringify(answer));
      });
    });
    const url = await listening(upstream);
    const server = await startGateway(`${url}/v1`, { api, retries: 0 });
    closeAfterTest(() => server.close(0));
    return { client: new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 }), bodies };
  }

  const prewarm = (client: OpenAI, input: unknown): Promise<OpenAI.Responses.Response> =>
    client.responses.create({
      model: "m",
      input,
      prompt_cache_options: { prewarm: true, ttl: "12h" },
    } as unknown as Options);

  test("a chat server has no such request, and is not asked", async () => {
    const { client, bodies } = await over("chat", {});
    expect(await prewarm(client, "Hi")).toMatchObject({ status: "completed", output: [], usage: { output_tokens: 0 } });
    expect(bodies).toEqual([]);
  });

  test("Anthropic's API is asked for no tokens, with cache_control on the breakpoints", async () => {
    const { client, bodies } = await over("messages", {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "m",
      content: [],
      stop_reason: "max_tokens",
      stop_sequence: null,
      usage: { input_tokens: 3, cache_creation_input_tokens: 900, cache_read_input_tokens: 0, output_tokens: 0 },
    });
    const part = { type: "input_text", text: "A long text.", prompt_cache_breakpoint: { mode: "explicit" } };
    const answer = await prewarm(client, [{ role: "user", content: [part] }]);
    expect(answer).toMatchObject({ status: "completed", output: [], usage: { output_tokens: 0 } });
    await prewarm(client, "Hi");
    expect(bodies).toMatchObject([
      {
        max_tokens: 0,
        messages: [{ content: [{ text: "A long text.", cache_control: { type: "ephemeral", ttl: "1h" } }] }],
      },
      { max_tokens: 0, cache_control: { type: "ephemeral", ttl: "1h" }, messages: [{ content: "Hi" }] },
    ]);
  });
});
