import { describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { UpstreamModel } from "../../src/serve/config/model-schema.ts";
import { eventStreamMessage } from "../../src/wire/apis/messages/event-stream.ts";
import { platformOfUrls } from "../../src/engines/upstream/find-api.ts";
import { type Answer, ask, gateway, isSigned, keys, type Sent } from "./vendor-double.ts";

// Doubles of Bedrock, Vertex AI and Azure from the vendors' documentation, which refuse what they do not document.

const message = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude",
  content: [{ type: "text", text: "Grüße" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 2 },
};
const events = [
  { type: "message_start", message: { ...message, content: [], stop_reason: null } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Grüße" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 2 } },
  { type: "message_stop", "amazon-bedrock-invocationMetrics": { inputTokenCount: 3 } },
];

function bedrock(sent: Sent): Answer {
  const refused = (status: number, why: string): Answer => ({ status, body: JSON.stringify({ message: why }) });
  const { path, headers, body } = sent;
  if (!isSigned(sent, "bedrock", "us-east-1"))
    return refused(403, "The request signature we calculated does not match.");
  const members = Object.keys(body);
  if (body["anthropic_version"] !== "bedrock-2023-05-31") return refused(400, "anthropic_version: Field required");
  if (members.includes("model") || members.includes("stream")) return refused(400, "Extra inputs are not permitted");
  const model = "/model/us.anthropic.claude-sonnet-4-20250514-v1%3A0";
  if (path === `${model}/invoke` && headers.accept === "application/json") return { body: JSON.stringify(message) };
  if (path !== `${model}/invoke-with-response-stream`) return refused(404, `no path ${path} for ${headers.accept}`);
  const frames = events.map((event) =>
    eventStreamMessage(
      { ":event-type": "chunk", ":content-type": "application/json", ":message-type": "event" },
      JSON.stringify({ bytes: Buffer.from(JSON.stringify(event)).toString("base64"), p: "abcd" }),
    ),
  );
  return { type: "application/vnd.amazon.eventstream", body: Buffer.concat(frames) };
}

describe("Anthropic's models at Bedrock", () => {
  Object.assign(process.env, keys);
  const upstream = (url: string): Omit<UpstreamModel, "kind"> => ({
    url,
    api: "bedrock",
    auth: { kind: "aws", region: "us-east-1" },
    models: { claude: "us.anthropic.claude-sonnet-4-20250514-v1:0" },
  });

  test.each([
    ["/v1/messages", false],
    ["/v1/messages", true],
    ["/v1/chat/completions", false],
    ["/v1/chat/completions", true],
    ["/v1/responses", true],
  ])("%s, stream: %j: signed, with the model in the path", async (path, stream) => {
    const { server, vendor } = await gateway(bedrock, upstream);
    const more = path === "/v1/responses" ? { input: "Hello", messages: undefined, max_tokens: undefined } : {};
    const { status, text } = await ask(server, path, { ...more, stream });
    expect([status, text]).toEqual([200, expect.stringContaining("Grüße")]);
    expect(vendor.requests).toHaveLength(1);
  });

  test("betas are members of the body", async () => {
    const { server, vendor } = await gateway(bedrock, upstream);
    const headers = { "anthropic-version": "2023-06-01", "anthropic-beta": "one-2025-01-01, two" };
    await ask(server, "/v1/messages", {}, headers);
    expect(vendor.requests[0]?.body).toMatchObject({ anthropic_beta: ["one-2025-01-01", "two"] });
  });

  test.each([
    [{ status: 403, body: '{"message":"The security token included in the request is expired"}' }, 403, "expired"],
    [{ status: 429, body: '{"message":"Too many requests"}' }, 429, "Too many requests"],
    [
      {
        type: "application/vnd.amazon.eventstream",
        body: eventStreamMessage(
          { ":message-type": "exception", ":exception-type": "throttlingException" },
          '{"message":"Slow down."}',
        ),
      },
      429,
      "Slow down.",
    ],
    [{ type: "application/vnd.amazon.eventstream", body: Buffer.alloc(40, 7) }, 500, "damaged message"],
  ])("%j is an error of the client's API", async (answer, status, words) => {
    const { server } = await gateway(() => answer, upstream);
    const told = await ask(server, "/v1/chat/completions", { stream: true });
    expect([told.status, told.text]).toEqual([status, expect.stringContaining(words)]);
  });

  test("OpenAI's API at Bedrock is signed, too", async () => {
    const answer = { choices: [{ message: { content: "Hi" }, finish_reason: "stop" }] };
    const { server } = await gateway(
      (sent) => ({ status: isSigned(sent, "bedrock", "eu-west-1") ? 200 : 403, body: JSON.stringify(answer) }),
      (url) => ({
        url: `${url}/openai/v1`,
        api: "chat",
        auth: { kind: "aws", region: "eu-west-1" },
        models: ["claude"],
      }),
    );
    expect((await ask(server, "/v1/chat/completions")).status).toBe(200);
  });

  test("auth and key exclude each other", async () => {
    const model = { kind: "upstream" as const, ...upstream("http://127.0.0.1:1"), key: "sk-0123456789" };
    await expect(createServer({ port: 0, models: [model] })).rejects.toThrow("models[0].auth");
  });
});

describe("Anthropic's models at Vertex AI", () => {
  const root = "/v1/projects/p/locations/global/publishers/anthropic";
  const vertex = ({ path, headers, body }: Sent): Answer => {
    if (headers.authorization !== "Bearer ya29.token") return { status: 401, body: '{"error":{"message":"no token"}}' };
    const isStream = body["stream"] === true;
    if (body["anthropic_version"] !== "vertex-2023-10-16")
      return { status: 400, body: '{"error":{"message":"version"}}' };
    if (path === `${root}/models/count-tokens:rawPredict` && body["model"] === "claude-sonnet-4@20250514")
      return { body: '{"input_tokens":17}' };
    const method = isStream ? "streamRawPredict" : "rawPredict";
    if (path !== `${root}/models/claude-sonnet-4@20250514:${method}` || "model" in body)
      return { status: 404, body: path };
    const sse = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
    return isStream ? { type: "text/event-stream", body: sse } : { body: JSON.stringify(message) };
  };
  const upstream = (url: string): Omit<UpstreamModel, "kind"> => ({
    url: url + root,
    api: "vertex",
    key: { command: [process.execPath, "-p", "'ya29.token'"] },
    models: { claude: "claude-sonnet-4@20250514" },
  });

  test.each([
    ["/v1/messages", false],
    ["/v1/messages", true],
    ["/v1/chat/completions", false],
    ["/v1/chat/completions", true],
  ])("%s, stream: %j, with the token that a command prints", async (path, stream) => {
    const { server } = await gateway(vertex, upstream);
    const { status, text } = await ask(server, path, { stream });
    expect([status, text]).toEqual([200, expect.stringContaining("Grüße")]);
  });

  test("tokens are counted there", async () => {
    const { server } = await gateway(vertex, upstream);
    const { text } = await ask(server, "/v1/messages/count_tokens", { max_tokens: undefined });
    expect(JSON.parse(text)).toMatchObject({ input_tokens: 17 });
  });
});

describe("Azure", () => {
  const hi = { choices: [{ message: { content: "Hi" }, finish_reason: "stop" }] };

  test("each model is a deployment in the path, with the api-version", async () => {
    const { server, vendor } = await gateway(
      () => ({ body: JSON.stringify(hi) }),
      (url) => ({
        url: `${url}/openai/deployments/{model}?api-version=2024-10-21`,
        api: "chat",
        headers: { "api-key": "azure-0123456789" },
        models: { claude: "my deployment" },
      }),
    );
    expect((await ask(server, "/v1/chat/completions")).status).toBe(200);
    expect(vendor.requests[0]).toMatchObject({
      path: "/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21",
      headers: { "api-key": "azure-0123456789" },
    });
  });
});

test.each([
  ["https://bedrock-runtime.us-east-1.amazonaws.com", "bedrock"],
  ["https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com/", "bedrock"],
  ["https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1", undefined],
  ["https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic", "vertex"],
  ["https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google", undefined],
  ["https://mine.openai.azure.com/openai/deployments/{model}?api-version=1", "azure"],
  ["https://mine.services.ai.azure.com/openai/v1", "azure"],
  ["https://api.openai.com/v1", undefined],
  ["https://openai.azure.com.example/openai/v1", undefined],
])("the platform of %s is %s", (url, platform) => {
  expect(platformOfUrls([url])).toBe(platform);
});
