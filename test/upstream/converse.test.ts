import { createRequire } from "node:module";
import { join } from "node:path";
import { expect, describe, test } from "vitest";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { UpstreamModel } from "../../src/serve/config/model-schema.ts";
import { eventStreamMessage } from "../../src/wire/apis/messages/event-stream.ts";
import {
  type ConverseAnswer,
  converseBody,
  converseEvent,
  converseEvents,
  converseRefusal,
  type ConverseRequest,
} from "../doubles/converse.ts";
import { npmPackage } from "../support/npm-package.ts";
import type { ScriptedServer } from "./scripted-server.ts";
import { type Answer, ask, gateway, isSigned, keys, type Sent } from "./vendor-double.ts";

Object.assign(process.env, keys);
const modules = npmPackage("@anthropic-ai/bedrock-sdk@1.1.3");

const eventStream = "application/vnd.amazon.eventstream";
const model = /^\/model\/us\.anthropic\.claude-\w+-4-[\d-]+-v1%3A0\/(converse(?:-stream)?)$/;

/** Answers a request that Converse takes, in the form that its path asks for. */
function converse(sent: Sent, answer: (body: ConverseRequest) => ConverseAnswer): Answer {
  const refused = (status: number, type: string, message: string): Answer => ({
    status,
    headers: { "x-amzn-errortype": `${type}:http://internal.amazon.com/coral/com.amazon.bedrock/` },
    body: JSON.stringify({ message }),
  });
  if (!isSigned(sent, "bedrock", "us-east-1")) return refused(403, "AccessDeniedException", "The signature is wrong.");
  const operation = model.exec(sent.path)?.[1];
  if (operation === undefined) return refused(404, "UnknownOperationException", `no path ${sent.path}`);
  const why = converseRefusal(sent.body);
  if (why !== undefined) return refused(400, "ValidationException", why);
  const answered = answer(sent.body as ConverseRequest);
  return operation === "converse-stream"
    ? { type: eventStream, body: Buffer.concat(converseEvents(answered)) }
    : { body: converseBody(answered) };
}

const upstream = (url: string): Omit<UpstreamModel, "kind"> => ({
  url,
  api: "converse",
  auth: { kind: "aws", region: "us-east-1" },
  models: { claude: "us.anthropic.claude-sonnet-4-20250514-v1:0" },
});

async function bedrock(
  answer: (body: ConverseRequest) => ConverseAnswer,
  more: Partial<UpstreamModel> = {},
): Promise<{ server: TruewireServer; vendor: ScriptedServer }> {
  return gateway(
    (sent) => converse(sent, answer),
    (url) => ({ ...upstream(url), ...more }),
  );
}

const said: ConverseAnswer = { content: [{ text: "Grüße" }] };

/** The message of a Messages answer, whole or streamed. */
async function message(server: TruewireServer, stream: boolean, more: object): Promise<Record<string, unknown>> {
  const { status, text } = await ask(server, "/v1/messages", { ...more, stream });
  expect([status, text]).toEqual([200, expect.any(String)]);
  return stream ? streamed(text) : (JSON.parse(text) as Record<string, unknown>);
}

/** Puts a stream's events together as its clients do. */
function streamed(text: string): Record<string, unknown> {
  interface Event {
    type: string;
    index: number;
    message: object;
    content_block: Record<string, unknown>;
    delta: Record<string, unknown>;
    usage?: object;
  }
  const made: Record<string, unknown> = {};
  const content: Record<string, unknown>[] = [];
  const inputs: string[] = [];
  for (const [, json = ""] of text.matchAll(/^data: (.*)$/gm)) {
    const { type, index, message: start, content_block: block, delta, usage } = JSON.parse(json) as Event;
    if (type === "message_start") Object.assign(made, start);
    if (type === "content_block_start") content[index] = { ...block };
    if (type === "message_delta") Object.assign(made, delta, { usage });
    if (type !== "content_block_delta") continue;
    const one = content[index] ?? {};
    for (const member of ["text", "thinking", "signature"])
      if (delta[member] !== undefined) one[member] = `${String(one[member] ?? "")}${String(delta[member])}`;
    if (delta["partial_json"] !== undefined) inputs[index] = `${inputs[index] ?? ""}${String(delta["partial_json"])}`;
  }
  for (const [index, input] of inputs.entries())
    if (input !== undefined) Object.assign(content[index] ?? {}, { input: JSON.parse(input || "{}") as unknown });
  return { ...made, content };
}

describe("Converse", () => {
  test.each([
    ["/v1/messages", false],
    ["/v1/messages", true],
    ["/v1/chat/completions", false],
    ["/v1/chat/completions", true],
    ["/v1/responses", false],
    ["/v1/responses", true],
  ])("%s, stream: %j: signed, with a text, its end and its usage", async (path, stream) => {
    const { server, vendor } = await bedrock(() => said);
    const more = path === "/v1/responses" ? { input: "Hello", messages: undefined, max_tokens: undefined } : {};
    const usage = path === "/v1/chat/completions" && stream ? { stream_options: { include_usage: true } } : {};
    const { status, text } = await ask(server, path, { ...more, ...usage, stream });
    expect([status, text]).toEqual([200, expect.stringMatching(/Gr.{0,300}üße/s)]);
    expect(text).toMatch(/"(?:output|completion)_tokens":7\b/);
    expect(text).not.toContain("repair");
    expect(vendor.requests).toHaveLength(1);
  });

  test.each([false, true])(
    "counts of the cache, the stop sequence, and a filtered answer, stream: %j",
    async (stream) => {
      const answers: ConverseAnswer[] = [
        {
          ...said,
          stopReason: "stop_sequence",
          fields: { stop_sequence: "END" },
          usage: {
            cacheReadInputTokens: 1000,
            cacheWriteInputTokens: 50,
            cacheDetails: [
              { ttl: "1h", inputTokens: 40 },
              { ttl: "5m", inputTokens: 10 },
            ],
          },
        },
        { ...said, stopReason: "guardrail_intervened" },
      ];
      const { server, vendor } = await bedrock(() => answers.shift() ?? said);
      expect(await message(server, stream, { stop_sequences: ["END"], temperature: 0.5 })).toMatchObject({
        stop_reason: "stop_sequence",
        stop_sequence: "END",
        usage: {
          input_tokens: 30,
          output_tokens: 7,
          cache_read_input_tokens: 1000,
          cache_creation_input_tokens: 50,
          // A stream has it at its start only, where Converse has no counts.
          ...(!stream && { cache_creation: { ephemeral_1h_input_tokens: 40, ephemeral_5m_input_tokens: 10 } }),
        },
      });
      expect(vendor.requests[0]?.body).toEqual({
        messages: [{ role: "user", content: [{ text: "Hello" }] }],
        inferenceConfig: { maxTokens: 9, temperature: 0.5, stopSequences: ["END"] },
        additionalModelResponseFieldPaths: ["/stop_sequence"],
      });
      expect(await message(server, stream, {})).toMatchObject({ stop_reason: "refusal" });
    },
  );

  test.each([false, true])("parallel calls, a failed one, and the next turn, stream: %j", async (stream) => {
    const calls: ConverseAnswer = {
      stopReason: "tool_use",
      content: [
        { text: "Both." },
        { toolUse: { toolUseId: "tooluse_a", name: "weather", input: { city: "Köln" } } },
        { toolUse: { toolUseId: "tooluse_b", name: "clock", input: {} } },
      ],
    };
    const { server, vendor } = await bedrock(({ messages }) => (messages.length === 1 ? calls : said));
    const tools = [
      { name: "weather", description: "", input_schema: { type: "object", properties: { city: { type: "string" } } } },
      { name: "clock", description: "The time", input_schema: { type: "object" } },
    ];
    const first = await message(server, stream, { tools, tool_choice: { type: "any" } });
    expect(first).toMatchObject({
      stop_reason: "tool_use",
      content: [
        { type: "text", text: "Both." },
        { type: "tool_use", id: "tooluse_a", name: "weather", input: { city: "Köln" } },
        { type: "tool_use", id: "tooluse_b", name: "clock", input: {} },
      ],
    });
    const results = [
      { type: "tool_result", tool_use_id: "tooluse_a", content: "rain" },
      { type: "tool_result", tool_use_id: "tooluse_b", is_error: true },
    ];
    const messages = [
      { role: "user", content: "Hello" },
      { role: "assistant", content: first["content"] },
      { role: "user", content: results },
      {
        role: "user",
        content: [
          { type: "text", text: "" },
          { type: "text", text: "Go on." },
        ],
      },
    ];
    expect(await message(server, stream, { tools, messages })).toMatchObject({ stop_reason: "end_turn" });
    expect(vendor.requests[0]?.body["toolConfig"]).toMatchObject({ toolChoice: { any: {} } });
    expect(vendor.requests[1]?.body["messages"]).toMatchObject([
      {},
      { content: calls.content },
      {
        content: [
          { toolResult: { toolUseId: "tooluse_a", content: [{ text: "rain" }] } },
          { toolResult: { toolUseId: "tooluse_b", content: [], status: "error" } },
          { text: "Go on." },
        ],
      },
    ]);
  });

  test.each([false, true])("calls of a client of chat, with a long name, stream: %j", async (stream) => {
    const name = `mcp__${"long".repeat(20)}`;
    const { server } = await bedrock(({ messages, toolConfig }) => {
      const [tool] = toolConfig?.tools ?? [];
      if (messages.length > 1 || tool === undefined || !("toolSpec" in tool)) return said;
      return {
        stopReason: "tool_use",
        content: [{ toolUse: { toolUseId: "tooluse_a", name: tool.toolSpec.name, input: { a: 1 } } }],
      };
    });
    const tools = [{ type: "function", function: { name, parameters: { type: "object" } } }];
    const { text } = await ask(server, "/v1/chat/completions", { tools, stream });
    expect(text).toContain(name);
    const call = { id: "tooluse_a", type: "function", function: { name, arguments: '{"a":1}' } };
    const messages = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hello" },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "tooluse_a", content: "2" },
    ];
    const answer = await ask(server, "/v1/chat/completions", { tools, messages, stream });
    expect([answer.status, answer.text]).toEqual([200, expect.stringMatching(/Gr.{0,300}üße/s)]);
  });

  test.each([false, true])("thinking with its signature over two turns, stream: %j", async (stream) => {
    const thought: ConverseAnswer["content"] = [
      { reasoningContent: { reasoningText: { text: "Hm. Well.", signature: "c2lnbmF0dXJl" } } },
      { reasoningContent: { redactedContent: "aGlkZGVu" } },
      { text: "Yes." },
    ];
    const { server, vendor } = await bedrock(() => ({ content: thought }));
    const more = { max_tokens: 2000, thinking: { type: "enabled", budget_tokens: 1024 }, top_k: 5 };
    const { content } = await message(server, stream, more);
    expect(content).toMatchObject([
      { type: "thinking", thinking: "Hm. Well.", signature: "c2lnbmF0dXJl" },
      { type: "redacted_thinking", data: "aGlkZGVu" },
      { type: "text", text: "Yes." },
    ]);
    const again = { role: "user", content: "And?" };
    await message(server, stream, { ...more, messages: [again, { role: "assistant", content }, again] });
    expect(vendor.requests[1]?.body).toMatchObject({
      additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: 1024 }, top_k: 5 },
      messages: [{}, { content: thought }, {}],
    });
  });
});

describe("a request of Converse", () => {
  /** What is sent for a request of a client. */
  async function sentFor(
    more: object,
    path = "/v1/messages",
    configured: Partial<UpstreamModel> = {},
    headers: Record<string, string> = {},
  ): Promise<ConverseRequest> {
    const { server, vendor } = await bedrock(() => said, configured);
    const { status, text } = await ask(server, path, more, headers);
    expect([status, text]).toEqual([200, expect.any(String)]);
    return vendor.requests[0]?.body as unknown as ConverseRequest;
  }
  const mark = { cache_control: { type: "ephemeral", ttl: "1h" } };
  const point = { cachePoint: { type: "default", ttl: "1h" } };
  const tool = { name: "f", input_schema: { type: "object" } };
  const toolSpec = { name: "f", inputSchema: { json: { type: "object" } } };
  const used = { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: {} }] };
  const result = { type: "tool_result", tool_use_id: "a", content: "1" };
  const user = { role: "user", content: "Hello" };

  test("images and documents", async () => {
    const source = { type: "base64", media_type: "image/jpeg", data: "/9j/4AAQSkZJRgABAQAAAQABAAD/" };
    const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0x" } };
    const text = { type: "document", source: { type: "text", media_type: "text/plain", data: "One." } };
    const content = [
      { type: "image", source },
      { ...pdf, title: "annual_report: 2025.pdf", context: "finance" },
      { ...text, title: "annual report 2025 pdf" },
      text,
      { type: "text", text: "Sum up." },
    ];
    const { messages } = await sentFor({ messages: [{ role: "user", content }] });
    expect(messages[0]?.content).toEqual([
      { image: { format: "jpeg", source: { bytes: source.data } } },
      {
        document: { format: "pdf", name: "annual report 2025 pdf", source: { bytes: "JVBERi0x" }, context: "finance" },
      },
      { document: { format: "txt", name: "annual report 2025 pdf 2", source: { text: "One." } } },
      { document: { format: "txt", name: "document", source: { text: "One." } } },
      { text: "Sum up." },
    ]);
  });

  test("marks of the cache follow their blocks", async () => {
    const content = [
      { ...result, content: [{ type: "text", text: "1", ...mark }] },
      { type: "text", text: "Go on.", cache_control: { type: "ephemeral" } },
    ];
    const body = await sentFor({
      system: [{ type: "text", text: "Be brief.", ...mark }],
      tools: [{ ...tool, ...mark }],
      messages: [user, used, { role: "user", content }],
    });
    expect(body).toMatchObject({
      system: [{ text: "Be brief." }, point],
      toolConfig: { tools: [{ toolSpec }, point] },
    });
    expect(body.messages[2]?.content).toEqual([
      { toolResult: { toolUseId: "a", content: [{ text: "1" }] } },
      point,
      { text: "Go on." },
      { cachePoint: { type: "default" } },
    ]);
  });

  test("the mark of a request, which clients of other APIs get, is after its last block", async () => {
    const body = await sentFor({}, "/v1/chat/completions");
    expect(body.messages).toEqual([
      { role: "user", content: [{ text: "Hello" }, { cachePoint: { type: "default" } }] },
    ]);
  });

  test("a model without a cache teaches that it takes no mark", async () => {
    const message = "You invoked an unsupported model or your request did not allow prompt caching.";
    const { server, vendor } = await gateway(
      (sent) =>
        JSON.stringify(sent.body).includes("cachePoint")
          ? { status: 403, headers: { "x-amzn-errortype": "AccessDeniedException" }, body: JSON.stringify({ message }) }
          : converse(sent, () => said),
      upstream,
    );
    for (let turn = 0; turn < 2; turn++) expect((await ask(server, "/v1/chat/completions")).status).toBe(200);
    // The keys may be why it was refused, so they are read again.
    const marked = vendor.requests.map(({ body }) => JSON.stringify(body).includes("cachePoint"));
    expect(marked).toEqual([true, true, false, false]);
    // Claude Code marks each request.
    const system = [{ type: "text", text: "Be brief.", ...mark }];
    const messages = [{ role: "user", content: [{ type: "text", text: "Hello", ...mark }] }];
    expect((await ask(server, "/v1/messages", { system, messages, tools: [{ ...tool, ...mark }] })).status).toBe(200);
    expect(vendor.requests).toHaveLength(5);
  });

  test.each([
    [
      { tools: [tool], tool_choice: { type: "auto" } },
      { tools: [{ toolSpec }], toolChoice: { auto: {} } },
    ],
    [
      { tools: [tool], tool_choice: { type: "tool", name: "f" } },
      { tools: [{ toolSpec }], toolChoice: { tool: { name: "f" } } },
    ],
    [{ tools: [{ ...tool, type: "custom", strict: true }] }, { tools: [{ toolSpec: { ...toolSpec, strict: true } }] }],
    [{ tools: [tool], tool_choice: { type: "none" } }, undefined],
    [
      { tools: [tool], tool_choice: { type: "none" }, messages: [user, used, { role: "user", content: [result] }] },
      { tools: [{ toolSpec }] },
    ],
    [{ messages: [user, used, { role: "user", content: [result] }] }, { tools: [{ toolSpec }] }],
  ])("the tools of %j", async (more, toolConfig) => {
    expect((await sentFor(more)).toolConfig).toEqual(toolConfig);
  });

  test("what only the model knows, and what the configuration adds to Converse", async () => {
    const computer = { type: "computer_20250124", name: "computer", display_width_px: 9, display_height_px: 9 };
    const guardrailConfig = { guardrailIdentifier: "g", guardrailVersion: "1" };
    const body = await sentFor(
      {
        tools: [tool, computer],
        metadata: { user_id: "u" },
        output_config: { effort: "low", format: { type: "json_schema", schema: { type: "object" } } },
      },
      "/v1/messages",
      { requests: { add: { guardrailConfig } }, models: { claude: "us.anthropic.claude-opus-4-5-20251101-v1:0" } },
      { "anthropic-beta": "computer-use-2025-01-24" },
    );
    expect(body).toMatchObject({
      guardrailConfig,
      toolConfig: { tools: [{ toolSpec }] },
      outputConfig: {
        effort: "low",
        textFormat: { type: "json_schema", structure: { jsonSchema: { schema: '{"type":"object"}' } } },
      },
      additionalModelRequestFields: {
        anthropic_beta: ["computer-use-2025-01-24"],
        metadata: { user_id: "u" },
        tools: [computer],
      },
    });
  });

  test("a member that the model refuses is learned, and left out", async () => {
    const { server, vendor } = await bedrock(() => said);
    const { status } = await ask(server, "/v1/messages", { context_management: { edits: [] } });
    expect([status, vendor.requests.length]).toEqual([200, 2]);
    expect(vendor.requests[1]?.body).not.toHaveProperty("additionalModelRequestFields");
  });

  test("a choice among the model's own tools alone goes with them", async () => {
    const bash = { type: "bash_20250124", name: "bash" };
    const choice = { type: "tool", name: "bash" };
    expect(await sentFor({ tools: [bash], tool_choice: choice })).toMatchObject({
      additionalModelRequestFields: { tools: [bash], tool_choice: choice },
    });
  });

  test("what it has no place for is left out, and the client is told", async () => {
    const search = [
      { type: "server_tool_use", id: "srvtoolu_1", name: "code_execution", input: {} },
      { type: "code_execution_tool_result", tool_use_id: "srvtoolu_1", content: {} },
      { type: "text", text: "Done." },
    ];
    const { server, vendor } = await bedrock(() => said);
    const response = await fetch(`${server.url}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: "claude",
        max_tokens: 9,
        tools: [{ ...tool, defer_loading: false }],
        messages: [
          user,
          { role: "assistant", content: search },
          user,
          { role: "assistant", content: search.slice(0, 2) },
          user,
        ],
      }),
    });
    expect(response.status).toBe(200);
    expect(response.headers.get("x-truewire-warning")).toContain("messages.content");
    expect(response.headers.get("x-truewire-warning")).toContain("tools.defer_loading");
    expect(vendor.requests[0]?.body["messages"]).toMatchObject([{}, { content: [{ text: "Done." }] }, {}]);
  });

  test.each([
    [{ type: "document", source: { type: "url", url: "https://example.com/a.pdf" } }, "messages[0].content[0].source"],
    [{ type: "image", source: { type: "file", file_id: "file_1" } }, "messages[0].content[0].source"],
    [{ type: "container_upload", file_id: "file_1" }, "messages[0].content[0]"],
  ])("%j is refused at its place", async (block, place) => {
    const { server, vendor } = await bedrock(() => said);
    const { status, text } = await ask(server, "/v1/messages", { messages: [{ role: "user", content: [block] }] });
    expect([status, text]).toEqual([400, expect.stringContaining(place)]);
    expect(text).toContain("Converse");
    expect(vendor.requests).toHaveLength(0);
  });

  test("with strict, nothing is left out", async () => {
    const { server } = await bedrock(() => said, { strict: true });
    const more = { tools: [tool], tool_choice: { type: "auto", disable_parallel_tool_use: true } };
    const { status, text } = await ask(server, "/v1/messages", more);
    expect([status, text]).toEqual([400, expect.stringContaining("parallel-calls")]);
  });
});

// The double is only as good as its likeness to AWS: the client of AWS's own SDK, which Anthropic's SDK for Bedrock brings along, reads it.
test.skipIf(modules === undefined)(
  "AWS's own client reads the double's answers, and writes what it takes",
  async () => {
    interface Aws {
      BedrockRuntimeClient: new (options: object) => {
        send(command: object): Promise<{ output?: object; stream?: AsyncIterable<object> }>;
      };
      ConverseCommand: new (input: object) => object;
      ConverseStreamCommand: new (input: object) => object;
    }
    const load = createRequire(join(modules ?? "", "@aws-sdk", "client-bedrock-runtime", "package.json"));
    const { BedrockRuntimeClient, ConverseCommand, ConverseStreamCommand } = load(".") as Aws;
    const { NodeHttpHandler } = load("@smithy/node-http-handler") as { NodeHttpHandler: new () => object };
    const { vendor } = await bedrock(() => said);
    const credentials = { accessKeyId: keys.AWS_ACCESS_KEY_ID, secretAccessKey: keys.AWS_SECRET_ACCESS_KEY };
    const endpoint = vendor.url.replace(/\/v1$/, "");
    const client = new BedrockRuntimeClient({
      region: "us-east-1",
      endpoint,
      credentials,
      maxAttempts: 1,
      requestHandler: new NodeHttpHandler(),
    });
    const input = {
      modelId: "us.anthropic.claude-sonnet-4-20250514-v1:0",
      messages: [{ role: "user", content: [{ text: "Hello" }, { cachePoint: { type: "default", ttl: "1h" } }] }],
      additionalModelRequestFields: { top_k: 5 },
    };
    const { output } = await client.send(new ConverseCommand(input));
    expect(output).toEqual({ message: { role: "assistant", content: [{ text: "Grüße" }] } });
    const { stream } = await client.send(new ConverseStreamCommand(input));
    const events: object[] = [];
    for await (const event of stream ?? []) events.push(event);
    expect(events.map((event) => Object.keys(event)[0])).toEqual([
      "messageStart",
      "contentBlockDelta",
      "contentBlockDelta",
      "contentBlockStop",
      "messageStop",
      "metadata",
    ]);
    expect(events.at(-1)).toMatchObject({ metadata: { usage: { inputTokens: 30 } } });
  },
);

describe("a stream of Converse", () => {
  const whole = converseEvents(said);
  const streamOf = async (body: Uint8Array): Promise<{ status: number; text: string }> => {
    const { server } = await gateway(() => ({ type: eventStream, body }), upstream);
    return ask(server, "/v1/messages", { stream: true });
  };

  test("without its usage is complete", async () => {
    const { text } = await streamOf(Buffer.concat(whole.slice(0, -1)));
    expect(streamed(text)).toMatchObject({ content: [{ text: "Grüße" }], stop_reason: "end_turn" });
    expect(text).toContain("message_stop");
  });

  test("that is cut says so after what it has said", async () => {
    for (const body of [Buffer.concat(whole.slice(0, 3)), Buffer.concat(whole).subarray(0, -5)]) {
      const { text } = await streamOf(body);
      expect(text).toContain("Gr");
      expect(text).toMatch(/event: error\n/);
      expect(text).not.toContain("message_stop");
    }
  });

  test.each([
    ["throttlingException", "rate_limit_error"],
    ["modelStreamErrorException", "api_error"],
  ])("with %s in the middle is %s", async (name, type) => {
    const exception = eventStreamMessage(
      { ":message-type": "exception", ":exception-type": name },
      '{"message":"No."}',
    );
    const { text } = await streamOf(Buffer.concat([...whole.slice(0, 3), exception]));
    expect(text).toContain("Gr");
    expect(text).toMatch(new RegExp(`event: error\\ndata: .*"${type}".*No\\.`));
  });

  test("with blocks that are empty, unknown or no JSON", async () => {
    const stop = converseEvent("contentBlockStop", { contentBlockIndex: 0 });
    const image = converseEvent("contentBlockStart", { contentBlockIndex: 1, start: { image: { format: "png" } } });
    const start = converseEvent("messageStart", { role: "assistant" });
    const good = Buffer.concat([start, stop, converseEvent("initial-response", {}), image, ...whole.slice(-2)]);
    expect(streamed((await streamOf(good)).text)).toMatchObject({ stop_reason: "end_turn" });
    const bad = eventStreamMessage({ ":message-type": "event", ":event-type": "messageStart" }, "[");
    expect(await streamOf(Buffer.from(bad))).toMatchObject({ text: expect.stringContaining("is not JSON") });
  });
});

test.each([
  [403, "AccessDeniedException", "The security token included in the request is expired", "permission_error"],
  [429, "ThrottlingException", "Too many tokens, please wait before trying again.", "rate_limit_error"],
  [400, "ValidationException", "The provided model identifier is invalid.", "invalid_request_error"],
])("status %i (%s) is an error of the client's API", async (status, name, words, type) => {
  const answer = { status, headers: { "x-amzn-errortype": name }, body: JSON.stringify({ message: words }) };
  const { server } = await gateway(
    () => answer,
    (url) => ({ ...upstream(url), retries: 0 }),
  );
  const told = await ask(server, "/v1/messages", { stream: true });
  expect([told.status, told.text]).toEqual([status, expect.stringContaining(words)]);
  expect(told.text).toContain(type);
});
