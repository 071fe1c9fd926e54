import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { said, serveFixture } from "../support/fixture-server.ts";
import type { FixtureServer } from "../support/fixture-server.ts";

const weather: OpenAI.Responses.FunctionTool = {
  type: "function",
  name: "get_weather",
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
  strict: true,
};

/** The official SDK's Responses against the programmed model, in both forms of the wire. */
describe.each(["lean", "exact"])("the openai SDK's responses, wire %s", (wire) => {
  let server: FixtureServer;
  let client: OpenAI;
  const model = "programmed";
  beforeAll(async () => {
    server = await serveFixture("--wire", wire);
    client = new OpenAI({ baseURL: server.baseURL, apiKey: "none", maxRetries: 0 });
  });
  afterAll(() => server.close());

  test("create: a whole response, with its text, usage and request id", async () => {
    const response = await client.responses.create({ model, input: "#plain" });
    expect(response).toMatchObject({ status: "completed", output_text: said.plain, model, error: null });
    expect(response.usage?.output_tokens).toBeGreaterThan(5);
    expect(response._request_id).toMatch(/^req_/);
  });

  test("create with stream: the loop over deltas", async () => {
    let text = "";
    for await (const event of await client.responses.create({ model, input: "#unicode", stream: true })) {
      if (event.type === "response.output_text.delta") text += event.delta;
    }
    expect(text).toBe(said.unicode);
  });

  test("stream: the strict accumulator gives the same response as create", async () => {
    const request = { model, input: "#plain", include: ["message.output_text.logprobs" as const], top_logprobs: 2 };
    const whole = await client.responses.create(request);
    const final = await client.responses.stream(request).finalResponse();
    expect(final.output_text).toBe(said.plain);
    const logprobs = ({ output: [item] }: OpenAI.Responses.Response): unknown =>
      item?.type === "message" && item.content[0]?.type === "output_text" ? item.content[0].logprobs : undefined;
    expect(logprobs(final)).toEqual(logprobs(whole));
    expect(final.usage?.output_tokens).toBe(whole.usage?.output_tokens);
  });

  test("a call of an async tool says so, and its output may come later", async () => {
    const tools = [{ ...weather, async: true }];
    const first = await client.responses.create({ model, input: "#call", tools });
    const [call] = first.output;
    expect(call).toMatchObject({ type: "function_call", name: "get_weather", async: true });
    expect(first.tools).toMatchObject([{ name: "get_weather", async: true }]);
    // Nobody has run it yet.
    const second = await client.responses.create({ model, previous_response_id: first.id, input: "#plain", tools });
    expect(second.output_text).toBe(said.plain);
    const late = { type: "function_call_output" as const, call_id: call?.type === "function_call" ? call.call_id : "" };
    const third = await client.responses.create({
      model,
      previous_response_id: second.id,
      input: [
        { ...late, output: "21 degrees" },
        { role: "user", content: "#plain" },
      ],
      tools,
    });
    expect(third.status).toBe("completed");
    const streamed = client.responses.stream({ model, input: "#call", tools });
    expect((await streamed.finalResponse()).output).toMatchObject([{ type: "function_call", async: true }]);
  });

  test("a configuration_update is stored, and constrains the answer", async () => {
    const format = {
      type: "json_schema",
      name: "city",
      schema: { type: "object", properties: {}, additionalProperties: false },
      strict: true,
    };
    const input = [
      { type: "configuration_update", text: { format } },
      { role: "user", content: "#plain" },
    ];
    const response = await client.responses.create({ model, input: input as OpenAI.Responses.ResponseInput });
    expect(response.output_text.replaceAll(/\s/g, "")).toBe("{}");
    const { data } = await client.responses.inputItems.list(response.id, { order: "asc" });
    expect(data).toMatchObject([input[0], { role: "user" }]);
  });

  test.each([
    ["fast", "fast"],
    ["ultrafast", "default"],
  ])("the tier %s is taken, and the answer names %s", async (tier, named) => {
    const response = await client.responses.create({ model, input: "#plain", service_tier: tier as "auto" });
    expect(response.service_tier).toBe(named);
  });

  test("a tool is called, and its result answered with the history given back", async () => {
    const stream = client.responses.stream({ model, input: "#call", tools: [weather] });
    const { output } = await stream.finalResponse();
    const [call] = output;
    expect(call).toMatchObject({
      type: "function_call",
      name: "get_weather",
      parsed_arguments: { city: "Paris" },
      status: "completed",
    });
    if (call?.type !== "function_call") throw new Error("no call came");
    expect(JSON.parse(call.arguments)).toEqual({ city: "Paris" });
    const answer = await client.responses.create({
      model,
      tools: [weather],
      input: [
        { role: "user", content: "#call" },
        ...output.map((item) => item as OpenAI.Responses.ResponseInputItem),
        { type: "function_call_output", call_id: call.call_id, output: "sunny, 21" },
      ],
    });
    expect(answer.output_text).toBe(said.toolAnswer);
  });

  test("thoughts are an item of their own", async () => {
    const { output, output_text: text } = await client.responses.create({ model, input: "#thought" });
    expect(text).toBe("My answer is forty-two.");
    expect(output[0]).toMatchObject({ type: "reasoning", content: [{ type: "reasoning_text" }], summary: [] });
  });

  test("parse: an answer in a format", async () => {
    const format = zodTextFormat(z.object({ city: z.string(), celsius: z.number(), sunny: z.boolean() }), "weather");
    const { output_parsed: parsed } = await client.responses.parse({ model, input: "#json", text: { format } });
    expect(parsed).toEqual({ city: "Paris", celsius: 21, sunny: true });
  });

  test("an answer that is cut is incomplete", async () => {
    const response = await client.responses.create({ model, input: "#plain #endless", max_output_tokens: 16 });
    expect(response).toMatchObject({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } });
  });

  test("a model that does not exist is a 400, as OpenAI has it", async () => {
    const failing = client.responses.create({ model: "nobody", input: "Hi" });
    const error: unknown = await failing.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ status: 400, param: "model", code: "model_not_found" });
  });
});
