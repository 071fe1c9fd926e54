import type { IncomingHttpHeaders } from "node:http";
import { afterEach, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { startGeminiNative } from "../doubles/gemini-native.ts";
import { objectOf } from "../doubles/chat-server.ts";
import type { Double, Json, Turns } from "../doubles/chat-server.ts";
import { rawChat } from "../sessions/clients/raw-chat.ts";
import { rawGemini } from "../sessions/clients/raw-gemini.ts";
import { rawMessages } from "../sessions/clients/raw-messages.ts";
import { rawResponses } from "../sessions/clients/raw-responses.ts";
import { problemOf } from "../sessions/clients/client.ts";
import { listen } from "../support/listen.ts";
import { userText } from "../doubles/task.ts";

let server: TruewireServer | undefined;
let double: Double | undefined;
afterEach(async () => {
  await server?.close(0);
  await double?.close();
});

async function serve(turn?: Turns, more: Json = {}): Promise<{ url: string; double: Double }> {
  double = await startGeminiNative(turn);
  const upstream = { kind: "upstream", name: "google", url: double.url, api: "gemini", retries: 0, ...more } as const;
  server = await createServer({ port: 0, logLevel: "silent", models: [upstream as never] });
  return { url: server.url, double };
}

const model = "gemini-3-pro-preview";

async function post(url: string, body: Json): Promise<{ status: number; body: Json }> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Json };
}

test.each([
  rawChat("everything"),
  rawChat("nothing"),
  rawResponses("plain"),
  rawMessages("half"),
  rawGemini("everything"),
  rawGemini("half"),
  rawGemini("nothing"),
])("a session of $name: no refusal, no lost call", async (client) => {
  const { url, double } = await serve();
  const session = client.open(url);
  for (let turn = 1; turn <= 4; turn++)
    expect(problemOf("s", turn, await session.turn(model, userText("s", turn)))).toBeUndefined();
  // A client that keeps nothing of a call: the demand is learned from the first refusal.
  expect(double.refusals.filter((words) => !words.includes("missing a thought_signature"))).toEqual([]);
  expect(double.lost).toEqual([]);
});

test("a request of chat: members, schemas, choices and reasoning in Google's form", async () => {
  const { url, double } = await serve("Yes.");
  const { status, body } = await post(`${url}/v1/chat/completions`, {
    model,
    messages: [
      { role: "system", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "Look" },
          { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
        ],
      },
    ],
    tools: [
      {
        type: "function",
        function: { name: "f", parameters: { type: "object", properties: { a: { type: "string", pattern: "x" } } } },
      },
    ],
    tool_choice: { type: "function", function: { name: "f" } },
    response_format: {
      type: "json_schema",
      json_schema: { name: "n", schema: { $schema: "x", type: "object", properties: {} } },
    },
    max_tokens: 5,
    temperature: 0.5,
    stop: ["x"],
    reasoning_effort: "high",
    frequency_penalty: 0.1,
  });
  expect(status).toBe(200);
  expect(body["usage"]).toMatchObject({
    completion_tokens: 8,
    prompt_tokens_details: { cached_tokens: 2 },
    completion_tokens_details: { reasoning_tokens: 3 },
  });
  expect(double.requests[0]).toEqual({
    systemInstruction: { parts: [{ text: "Be brief." }] },
    contents: [
      { role: "user", parts: [{ text: "Look" }, { inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } }] },
    ],
    tools: [
      {
        functionDeclarations: [
          {
            name: "f",
            parametersJsonSchema: {
              type: "object",
              properties: { a: { type: "string", description: 'JSON Schema: {"pattern":"x"}' } },
            },
          },
        ],
      },
    ],
    toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f"] } },
    generationConfig: {
      stopSequences: ["x"],
      responseMimeType: "application/json",
      responseJsonSchema: { type: "object", properties: {} },
      maxOutputTokens: 5,
      temperature: 0.5,
      frequencyPenalty: 0.1,
      thinkingConfig: { includeThoughts: true, thinkingLevel: "high" },
    },
  });
});

test("a request of this API is forwarded as it came, unknown members included", async () => {
  const { url, double } = await serve("Yes.");
  const sent = { contents: [{ parts: [{ text: "Hi" }] }], safety_settings: [], generation_config: { top_k: 3 } };
  const { status, body } = await post(`${url}/v1beta/models/${model}:generateContent`, sent);
  expect(status).toBe(200);
  expect(double.requests).toEqual([sent]);
  expect(body).toMatchObject({
    candidates: [{ content: { parts: [{ text: "Yes." }] }, finishReason: "STOP" }],
    usageMetadata: { candidatesTokenCount: 5, thoughtsTokenCount: 3, cachedContentTokenCount: 2 },
  });
});

test("a refusal of Google's reaches clients of each API in their form", async () => {
  const { url } = await serve("Yes.");
  const gemini = await post(`${url}/v1beta/models/${model}:generateContent`, {
    contents: [{ parts: [{ text: "a" }], role: "user" }],
    generationConfig: { nope: 1 },
  });
  const words = "Invalid JSON payload received. Unknown name \"nope\" at 'generation_config': Cannot find field.";
  expect(gemini).toMatchObject({
    status: 400,
    body: { error: { code: 400, status: "INVALID_ARGUMENT", message: words } },
  });
  const chat = await post(`${url}/v1/chat/completions`, { model: "gone", messages: [{ role: "user", content: "a" }] });
  expect(chat).toMatchObject({ status: 404, body: { error: { code: "model_not_found" } } });
});

test("its models, counts of tokens and embeddings", async () => {
  const { url } = await serve("Yes.");
  const list = (await (await fetch(`${url}/v1/models`)).json()) as Json;
  expect(list["data"]).toMatchObject([{ id: model, max_model_len: 1_048_576 }]);
  const count = await post(`${url}/v1beta/models/${model}:countTokens`, { contents: [{ parts: [{ text: "a" }] }] });
  expect(count.body).toMatchObject({ totalTokens: 7 });
  const { body } = await post(`${url}/v1/embeddings`, { model, input: ["a", "b"] });
  expect(body["data"]).toMatchObject([{ embedding: [0.6, 0.8] }, { embedding: [0.6, 0.8] }]);
  expect(objectOf(body["usage"])).toBeDefined();
});

test("an address at Google's host is one of its own API", async () => {
  const { apiOfUrls, geminiRoot } = await import("../../src/engines/upstream/find-api.ts");
  expect(apiOfUrls(["https://generativelanguage.googleapis.com"])).toBe("gemini");
  expect(apiOfUrls(["https://generativelanguage.googleapis.com/v1beta/openai"])).toBeUndefined();
  const vertex = "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1";
  expect(apiOfUrls([`${vertex}/publishers/google`])).toBe("gemini");
  expect(apiOfUrls([`${vertex}/publishers/anthropic`, `${vertex}/endpoints/openapi`])).toBeUndefined();
  expect(apiOfUrls(["https://aiplatform.googleapis.com.example/v1/publishers/google"])).toBeUndefined();
  expect(geminiRoot("https://generativelanguage.googleapis.com")).toBe(
    "https://generativelanguage.googleapis.com/v1beta",
  );
});

test.each([
  ["ya29.token", { authorization: "Bearer ya29.token" }],
  ["AIzaKey", { "x-goog-api-key": "AIzaKey" }],
])("Vertex AI's address, with the key %s", async (key, sent) => {
  const asked: { url: string | undefined; headers: IncomingHttpHeaders }[] = [];
  const answer = {
    candidates: [{ content: { role: "model", parts: [{ text: "Hi" }] }, finishReason: "STOP" }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  };
  const vertex = await listen(({ url, headers }, response) => {
    asked.push({ url, headers });
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(answer));
  });
  try {
    const path = "/v1/projects/p/locations/l/publishers/google";
    const url = `${vertex.url}${path}`;
    const upstream = { kind: "upstream", name: "vertex", url, api: "gemini", models: ["gemini-3-flash"], key } as const;
    server = await createServer({ port: 0, logLevel: "silent", models: [upstream] });
    const { status, body } = await post(`${server.url}/v1/chat/completions`, {
      model: "gemini-3-flash",
      messages: [{ role: "user", content: "Hello" }],
    });
    expect({ status, body }).toMatchObject({ status: 200, body: { choices: [{ message: { content: "Hi" } }] } });
    expect(asked.map(({ url: one }) => one)).toEqual([`${path}/models/gemini-3-flash:generateContent`]);
    const { authorization, "x-goog-api-key": own } = asked[0]?.headers ?? {};
    expect({ authorization, "x-goog-api-key": own }).toEqual({
      authorization: undefined,
      "x-goog-api-key": undefined,
      ...sent,
    });
  } finally {
    await vertex.close();
  }
});
