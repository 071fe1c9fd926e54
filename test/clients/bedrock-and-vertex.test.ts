import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { EventStreamDecoder } from "../../src/wire/apis/messages/event-stream.ts";
import { npmPackage } from "../support/npm-package.ts";
import { answer, asked, failed, ScriptedEngine } from "../support/scripted-engine.ts";

// Claude Code and Anthropic's SDKs for Bedrock and Vertex AI have the model in the path, and Bedrock's a binary stream.

const key = "sk-plain-0123456789";
const model = "us.anthropic.claude-sonnet-4-20250514-v1:0";
const said = "Grüße 🌍";
/** Fails as its prompt says: with the status before it has said anything, or after. */
const engine = new ScriptedEngine((request) => {
  const [, when, status] = /^fail (at once|later) with (\d+)$/.exec(asked(request)) ?? [];
  if (when === undefined) return answer([said]);
  const start = { type: "start", choice: 0 } as const;
  const text = { type: "text-delta", choice: 0, text: said } as const;
  const end = failed("upstream-error", { status: Number(status), isForeign: true });
  return when === "later" ? [[start, text], [end]] : [[end]];
}, "local");
const body = { max_tokens: 9, messages: [{ role: "user" as const, content: "Hello" }] };
let server: TruewireServer;
let open: TruewireServer;
beforeAll(async () => {
  const models = [{ kind: "engine" as const, engine, aliases: ["*claude-*"] }];
  server = await createServer({ port: 0, logLevel: "silent", apiKey: key, models });
  open = await createServer({ port: 0, logLevel: "silent", models });
});
afterAll(() => Promise.all([server.close(0), open.close(0)]));

interface Client {
  messages: {
    create(body: object): Promise<{ content: { text: string }[] }>;
    stream(body: object): { finalMessage(): Promise<{ content: { text: string }[]; stop_reason: string }> };
  };
}

const bedrockModules = npmPackage("@anthropic-ai/bedrock-sdk@1.1.3");
const vertexModules = npmPackage("@anthropic-ai/vertex-sdk@1.1.3");

async function sdk(modules: string | undefined, name: string, exported: string, options: object): Promise<Client> {
  const file = pathToFileURL(join(modules ?? "", "@anthropic-ai", name, "index.mjs")).href;
  const loaded = (await import(file)) as Record<string, new (options: object) => Client>;
  const Made = loaded[exported];
  if (Made === undefined) throw new Error(`${file} has no ${exported}`);
  return new Made({ maxRetries: 0, ...options });
}

const post = (url: string, more: object = {}, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify({ ...body, ...more }),
  });

describe("the official SDKs", () => {
  test.skipIf(bedrockModules === undefined).each([
    ["a key", (): object => ({ apiKey: key, baseURL: server.url, awsRegion: "us-east-1" })],
    [
      "signed requests at a server without keys",
      (): object => ({ awsAccessKey: "AKIDEXAMPLE", awsSecretKey: "s", baseURL: open.url, awsRegion: "us-east-1" }),
    ],
    ["no authentication", (): object => ({ skipAuth: true, baseURL: open.url, awsRegion: "us-east-1" })],
  ])("Bedrock: an answer and a stream, with %s", async (_, options) => {
    const client = await sdk(bedrockModules, "bedrock-sdk", "AnthropicBedrock", options());
    expect((await client.messages.create({ model, ...body })).content).toMatchObject([{ text: said }]);
    const streamed = await client.messages.stream({ model, ...body }).finalMessage();
    expect(streamed).toMatchObject({ content: [{ text: said }], stop_reason: "end_turn" });
  });

  describe.skipIf(bedrockModules === undefined)("Bedrock: errors have the SDK's classes", () => {
    const clientOf = (apiKey = key): Promise<Client> =>
      sdk(bedrockModules, "bedrock-sdk", "AnthropicBedrock", { apiKey, baseURL: server.url, awsRegion: "us-east-1" });
    const errorOf = (asking: Promise<unknown>): Promise<unknown> =>
      asking.then(
        () => "no error",
        (error: Error) => ({ ...error, name: error.constructor.name }),
      );
    const request = (content: string): object => ({ model, ...body, messages: [{ role: "user", content }] });

    test.each([
      [400, "BadRequestError", "invalid_request_error"],
      [429, "RateLimitError", "rate_limit_error"],
      [500, "InternalServerError", "api_error"],
      [529, "OverloadedError", "overloaded_error"],
    ])("status %i: %s", async (status, name, type) => {
      const { messages } = await clientOf();
      const asking = request(`fail at once with ${status}`);
      expect(await errorOf(messages.create(asking))).toMatchObject({ name, status, type });
      expect(await errorOf(messages.stream(asking).finalMessage())).toMatchObject({ name, status, type });
    });

    test("a wrong key, and a model that is not there", async () => {
      const wrong = (await clientOf("sk-wrong-0123456789")).messages.create(request("Hello"));
      expect(await errorOf(wrong)).toMatchObject({ name: "AuthenticationError", status: 401 });
      const absent = (await clientOf()).messages.create({ ...request("Hello"), model: "absent" });
      expect(await errorOf(absent)).toMatchObject({ name: "NotFoundError", status: 404 });
    });

    test.each([
      [429, "throttlingException"],
      [500, "internalServerException"],
    ])("an answer that fails later with %i: %s", async (status, type) => {
      const { messages } = await clientOf();
      const error = await errorOf(messages.stream(request(`fail later with ${status}`)).finalMessage());
      expect(error).toMatchObject({ name: "APIError", type, error: { error: { message: "It broke." } } });
    });
  });

  test.skipIf(vertexModules === undefined)("Vertex AI: an answer and a stream", async () => {
    const authClient = { getRequestHeaders: async () => new Headers({ authorization: `Bearer ${key}` }) };
    const options = { authClient, baseURL: `${server.url}/v1`, region: "us-east5", projectId: "p" };
    const client = await sdk(vertexModules, "vertex-sdk", "AnthropicVertex", options);
    const named = { model: "claude-sonnet-4@20250514", ...body };
    expect((await client.messages.create(named)).content).toMatchObject([{ text: said }]);
    const streamed = await client.messages.stream(named).finalMessage();
    expect(streamed).toMatchObject({ content: [{ text: said }], stop_reason: "end_turn" });
  });
});

describe("Bedrock's paths", () => {
  test("the stream is an event stream of the Messages API's events", async () => {
    const path = `/model/${encodeURIComponent(model)}/invoke-with-response-stream`;
    const response = await post(server.url + path, { anthropic_version: "bedrock-2023-05-31" });
    expect(response.headers.get("content-type")).toBe("application/vnd.amazon.eventstream");
    const decoder = new EventStreamDecoder();
    const text = decoder.write(new Uint8Array(await response.arrayBuffer())) + decoder.end();
    const types = [...text.matchAll(/^data: (.*)$/gm)].map(
      ([, json = ""]) => (JSON.parse(json) as { type: string }).type,
    );
    expect([types[0], types.at(-1)]).toEqual(["message_start", "message_stop"]);
    expect(text).toContain(said);
  });

  test.each([
    [`/model/${model}/invoke`, { anthropic_version: "bedrock-2023-05-31", anthropic_beta: ["a"] }, 200],
    [`/model/${model}/invoke`, { anthropic_version: "bedrock-2023-05-31" }, 401, "wrong"],
    ["/model/no-such-model/invoke", {}, 404],
    ["/model//invoke", {}, 404],
    [`/model/${model}/converse`, {}, 404],
    ["/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:rawPredict", { anthropic_version: "v" }, 200],
    ["/projects/p/locations/l/publishers/anthropic/models/claude-x:rawPredict", {}, 200],
    ["/v1/projects/p/locations/l/publishers/google/models/claude-x:rawPredict", {}, 404],
    ["/v1/projects/p/q/locations/l/publishers/anthropic/models/claude-x:rawPredict", {}, 404],
  ])("%s with %j: %i", async (path, more, status, used = key) => {
    const response = await post(server.url + path, more, { authorization: `Bearer ${used}` });
    expect(response.status).toBe(status);
    await response.text();
  });

  test("tokens are counted at Vertex AI's path, whose request names the model", async () => {
    const path = "/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict";
    const { max_tokens: _, ...counted } = body;
    const response = await fetch(server.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({ anthropic_version: "vertex-2023-10-16", model: "claude-x", ...counted }),
    });
    expect(await response.json()).toMatchObject({ input_tokens: expect.any(Number) });
  });
});
