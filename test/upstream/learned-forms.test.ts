import { createServer as createHttpServer } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { sourcePorts } from "../../src/wire/apis/ports.ts";
import { readChatRequest } from "../../src/wire/apis/chat/request.ts";
import { readMessageRequest } from "../../src/wire/apis/messages/request.ts";
import { readResponsesRequest } from "../../src/wire/apis/responses/request.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { startGateway } from "./gateway.ts";
import { startScripted } from "./scripted-server.ts";
import { listOf, objectOf, startChat } from "../doubles/chat-server.ts";
import type { Json, Refusal, Double, ChatServer, Turn, Turns } from "../doubles/chat-server.ts";
import { listen } from "../support/listen.ts";

/*
 * Forms that some servers refuse: long names of tools, custom tools over Responses, histories without reasoning. Before, a client got the
 * refusal, with each of its requests.
 */

const closed: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closed.splice(0).reverse()) await close();
});

async function setUp(
  refusal: ChatServer["refusal"],
  turn: Turns = "Hi",
): Promise<{ upstream: Double; truewire: TruewireServer }> {
  const upstream = await startChat({ refusal }, turn);
  closed.push(() => upstream.close());
  const truewire = await startGateway(upstream.url, {});
  closed.push(() => truewire.close(0));
  return { upstream, truewire };
}

async function ask(url: string, path: string, body: Json): Promise<{ status: number; text: string; headers: Headers }> {
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model: "m", ...body }),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const refused = (message: string, more: Json = {}): Refusal => ({
  status: 400,
  body: { error: { message, type: "invalid_request_error", ...more } },
});

describe("a tool whose name is longer than a server takes", () => {
  const beginning = "mcp__library_of_the_small_town__department_of_old_maps__find_a_book_by";
  const names = [`${beginning}_title`, `${beginning}_author`];
  const parameters = { type: "object", properties: {} };
  /** OpenAI's words (microsoft/foundry-dev-tools#201). */
  const short = (body: Json): Refusal | undefined => {
    const sent = listOf(body["tools"]).map((tool) => String(objectOf(tool["function"])["name"]));
    const at = sent.findIndex((name) => name.length > 64);
    if (at === -1) return undefined;
    const path = `tools[${at}].function.name`;
    return refused(
      `Invalid '${path}': string too long. Expected a string with maximum length 64, but got a string with length ${sent[at]?.length} instead.`,
      { param: path, code: "string_above_max_length" },
    );
  };
  /** The model calls the second tool. */
  const callSecond = (body: Json): Turn => ({
    calls: [{ name: String(objectOf(listOf(body["tools"])[1]?.["function"])["name"]), input: {} }],
  });
  const callsOf = (name: string): Json => ({
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c1", type: "function", function: { name, arguments: "{}" } }],
  });
  const requests: readonly (readonly [string, Json])[] = [
    [
      "/v1/chat/completions",
      {
        messages: [
          { role: "user", content: "Find." },
          callsOf(names[1] ?? ""),
          { role: "tool", tool_call_id: "c1", content: "R" },
        ],
        tools: names.map((name) => ({ type: "function", function: { name, parameters } })),
        tool_choice: { type: "function", function: { name: names[1] } },
      },
    ],
    ["/v1/responses", { input: "Find.", tools: names.map((name) => ({ type: "function", name, parameters })) }],
    [
      "/v1/messages",
      {
        max_tokens: 100,
        messages: [{ role: "user", content: "Find." }],
        tools: names.map((name) => ({ name, input_schema: parameters })),
      },
    ],
  ];

  test.each(requests.flatMap(([path, body]) => [true, false].map((stream) => ({ path, body, stream }))))(
    "is called by its own name: $path, stream: $stream",
    async ({ path, body, stream }) => {
      const { upstream, truewire } = await setUp(short, callSecond);
      for (let time = 0; time < 2; time++) {
        const { status, text } = await ask(truewire.url, path, { ...body, stream });
        expect([status, text]).toEqual([200, expect.stringContaining(names[1] ?? "")]);
      }
      expect(upstream.refusals).toHaveLength(1);
      const [, ...sent] = upstream.requests.filter(({ tools }) => tools !== undefined);
      expect(sent).toHaveLength(2);
      for (const one of sent) for (const name of names) expect(JSON.stringify(one)).not.toContain(name);
      expect(sent[0]?.["tools"]).toEqual(sent[1]?.["tools"]);
      const declared = listOf(sent[0]?.["tools"]).map((tool) => objectOf(tool["function"])["name"]);
      expect(new Set(declared).size).toBe(2);
    },
  );
});

describe("reasoning that a server demands back", () => {
  /** DeepSeek (anomalyco/opencode#25356) and Kimi, in their words. */
  const words = [
    "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
  ];
  const messages = [
    { role: "user", content: "Find Ink." },
    {
      role: "assistant",
      content: "",
      tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "c1", content: "shelf 3" },
    { role: "assistant", content: "On shelf 3." },
    { role: "user", content: "Thanks." },
  ];

  test.each(words)("is sent as an empty text with each call: %s", async (message) => {
    const { upstream, truewire } = await setUp((body) =>
      listOf(body["messages"]).some((one) => one["tool_calls"] !== undefined && one["reasoning_content"] === undefined)
        ? refused(message)
        : undefined,
    );
    for (let time = 0; time < 2; time++)
      expect((await ask(truewire.url, "/v1/chat/completions", { messages })).status).toBe(200);
    expect(upstream.refusals).toHaveLength(1);
    const sent = listOf(upstream.requests.at(-1)?.["messages"]).map((one) => one["reasoning_content"]);
    expect(sent).toEqual([undefined, "", undefined, undefined, undefined]);
  });

  test("is sent with every message of the assistant where calls are not enough, and own reasoning stays", async () => {
    const { upstream, truewire } = await setUp((body) =>
      listOf(body["messages"]).some((one) => one["role"] === "assistant" && one["reasoning_content"] === undefined)
        ? refused("reasoning_content is required in assistant messages")
        : undefined,
    );
    const own = messages.map((one, at) => (at === 1 ? { ...one, reasoning_content: "I look." } : one));
    expect((await ask(truewire.url, "/v1/chat/completions", { messages: own })).status).toBe(200);
    const sent = listOf(upstream.requests.at(-1)?.["messages"]).map((one) => one["reasoning_content"]);
    expect(sent).toEqual([undefined, "I look.", undefined, "", undefined]);
  });
});

describe("thinking that a server with Messages demands back", () => {
  /** DeepSeek's words (anomalyco/opencode#24791). */
  const words = "The `content[].thinking` in the thinking mode must be passed back to the API.";
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: [{ type: "text", text: "Hi" }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  };
  const thinkingIn = (body: Json): Json[] =>
    listOf(body["messages"]).flatMap((one) => listOf(one["content"]).filter(({ type }) => type === "thinking"));

  async function startThinking(isRight: (body: Json) => boolean) {
    let refusals = 0;
    const upstream = await startScripted((response, body) => {
      const isRefused = !isRight(body);
      if (isRefused) refusals++;
      const error = { type: "error", error: { type: "invalid_request_error", message: words } };
      response
        .writeHead(isRefused ? 400 : 200, { "content-type": "application/json" })
        .end(JSON.stringify(isRefused ? error : message));
    });
    closed.push(() => upstream.close());
    const truewire = await startGateway(upstream.url, { api: "messages" });
    closed.push(() => truewire.close(0));
    return { upstream, truewire, refusals: () => refusals };
  }

  const call = { id: "toolu_1", type: "function", function: { name: "f", arguments: "{}" } };
  const chat = (members: Json) => ({
    messages: [
      { role: "user", content: "Find." },
      { role: "assistant", content: null, tool_calls: [call], ...members },
      { role: "tool", tool_call_id: "toolu_1", content: "ok" },
    ],
  });

  // A chat client's reasoning was left out, since Anthropic refuses thinking without a signature, and every later step was refused.
  test("is sent without a signature, and later requests have it at once", async () => {
    const { upstream, truewire, refusals } = await startThinking((body) => thinkingIn(body).length > 0);
    for (let time = 0; time < 2; time++)
      expect((await ask(truewire.url, "/v1/chat/completions", chat({ reasoning_content: "Hm." }))).status).toBe(200);
    expect(refusals()).toBe(1);
    expect(thinkingIn(upstream.requests.at(-1)?.body ?? {})).toEqual([
      { type: "thinking", thinking: "Hm.", signature: "" },
    ]);
  });

  test("is empty where a turn has had none, for clients of this API, too", async () => {
    const { upstream, truewire } = await startThinking((body) => thinkingIn(body).length > 0);
    const use = { type: "tool_use", id: "toolu_1", name: "f", input: {} };
    const messages = [
      { role: "user", content: "Find." },
      { role: "assistant", content: [use] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "ok" }] },
    ];
    const answers = [
      await ask(truewire.url, "/v1/messages", { max_tokens: 100, messages }),
      await ask(truewire.url, "/v1/chat/completions", chat({})),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(thinkingIn(upstream.requests.at(-1)?.body ?? {})).toEqual([
      { type: "thinking", thinking: "", signature: "" },
    ]);
  });
});

describe("a custom tool that a server with Responses refuses", () => {
  const answer = {
    id: "resp_1",
    object: "response",
    created_at: 1_790_000_000,
    status: "completed",
    model: "m",
    output: [
      {
        id: "fc_1",
        type: "function_call",
        call_id: "call_1",
        name: "apply_patch",
        arguments: '{"input": "*** Begin Patch"}',
        status: "completed",
      },
    ],
    usage: { input_tokens: 20, output_tokens: 9, total_tokens: 29 },
  };

  test.each([
    "tools[0].type: unknown tool type: custom",
    "'type' of tool must be 'function'",
    "body.tools.0.type: Input should be 'function'",
  ])("is sent as a function, and its call comes back as its own: %s", async (message) => {
    const requests: Json[] = [];
    const http = createHttpServer((request, response) => {
      let text = "";
      request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      request.on("end", () => {
        const send = (status: number, value: unknown): void => {
          response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
        };
        if (request.method !== "POST") return send(200, { object: "list", data: [] });
        const body = JSON.parse(text) as Json;
        requests.push(body);
        const sent = JSON.stringify(body);
        return sent.includes('"custom') ? send(400, { error: { message, param: "tools[0].type" } }) : send(200, answer);
      });
    });
    const { url, close } = await listen(http);
    closed.push(close);
    const truewire = await startGateway(`${url}/v1`, { api: "responses", models: { m: "m" } });
    closed.push(() => truewire.close(0));
    const format = { type: "grammar", syntax: "lark", definition: "start: /.+/" };
    const body = {
      tools: [{ type: "custom", name: "apply_patch", description: "Edits.", format }],
      tool_choice: { type: "custom", name: "apply_patch" },
      input: [
        { role: "user", content: "Edit." },
        { type: "custom_tool_call", call_id: "c0", name: "apply_patch", input: 'a "b"' },
        { type: "custom_tool_call_output", call_id: "c0", output: "done" },
      ],
    };
    for (let time = 0; time < 2; time++) {
      const { status, text } = await ask(truewire.url, "/v1/responses", body);
      expect([status, text]).toEqual([200, expect.stringContaining('"custom_tool_call"')]);
      expect(listOf((JSON.parse(text) as Json)["output"])).toMatchObject([
        { type: "custom_tool_call", call_id: "call_1", name: "apply_patch", input: "*** Begin Patch" },
      ]);
    }
    expect(requests).toHaveLength(3);
    expect(requests[2]).toMatchObject({
      tools: [{ type: "function", name: "apply_patch", description: expect.stringContaining("start: /.+/") as string }],
      tool_choice: { type: "function", name: "apply_patch" },
      input: [
        { role: "user" },
        { type: "function_call", call_id: "c0", arguments: '{"input":"a \\"b\\""}' },
        { type: "function_call_output", call_id: "c0", output: "done" },
      ],
    });
  });
});

describe("thinking that a client switches off", () => {
  const messages = [{ role: "user", content: "Hi" }];
  const requests: readonly (readonly [string, GenerationRequest])[] = [
    ...[
      { chat_template_kwargs: { enable_thinking: false } },
      { chat_template_kwargs: { thinking: false } },
      { enable_thinking: false },
      { think: false },
      { thinking: { type: "disabled" } },
      { reasoning_effort: "none" },
    ].map(
      (member) =>
        [`chat ${JSON.stringify(member)}`, readChatRequest({ model: "m", messages, ...member }, "r").request] as const,
    ),
    ["responses", readResponsesRequest({ model: "m", input: "Hi", reasoning: { effort: "none" } }, "r").request],
    [
      "messages",
      readMessageRequest({ model: "m", max_tokens: 5, messages, thinking: { type: "disabled" } }, "r").request,
    ],
  ];

  // It was dropped without a word, or not read at all.
  test.each(requests)("reaches every kind of upstream: %s", (_, request) => {
    const written = (api: "chat" | "ollama" | "messages" | "responses", profile = {}): Json =>
      sourcePorts[api].writeRequest(request, profile, () => {});
    expect(written("ollama")).toMatchObject({ think: false });
    expect(written("messages")).toMatchObject({ thinking: { type: "disabled" } });
    if (request.passthrough?.dialect !== "responses")
      expect(written("responses")).toMatchObject({ reasoning: { effort: "none" } });
    expect(written("chat", { templateVariables: true })).toMatchObject({
      chat_template_kwargs: { enable_thinking: false, thinking: false },
    });
  });

  test("is said to be left out where a server has no way to say it", async () => {
    const { truewire } = await setUp(() => undefined);
    const { headers } = await ask(truewire.url, "/v1/messages", {
      max_tokens: 5,
      messages,
      thinking: { type: "disabled" },
    });
    expect(headers.get("x-truewire-warning")).toContain("reasoning_effort: The amount of reasoning was left out");
  });
});
