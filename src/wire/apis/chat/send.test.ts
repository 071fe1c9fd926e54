import { describe, expect, test } from "vitest";
import type { ChatPrompt, GenerationRequest } from "../../core/request.ts";
import { readChatRequest } from "./request.ts";
import { writeChatRequest } from "./send.ts";

const prompt: ChatPrompt = {
  kind: "chat",
  template: {},
  messages: [
    { role: "system", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "What is it?" },
        { type: "image", url: "data:image/png;base64,AA==", detail: "low" },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "Hm." },
        { type: "tool-call", id: "call_1", name: "f", arguments: '{"a":' },
      ],
    },
    { role: "tool", content: "42", toolCallId: "call_1", name: "f" },
  ],
};

/** As a program or a library makes it: no JSON to forward. */
const made: GenerationRequest = {
  id: "req_1",
  model: "m",
  prompt,
  sampling: { temperature: 0, topP: 0.5, topK: 0, seed: 0 },
  limits: { maxTokens: 5, stop: ["END"] },
  logprobs: { top: 0 },
  tools: [
    { name: "f", description: "d", parameters: { type: "object", properties: {} }, strict: true },
    { name: "sh", kind: "custom" },
    { name: "re", kind: "custom", inputGrammar: { syntax: "regex", definition: "a+" } },
  ],
  toolChoice: { type: "named", name: "sh" },
  parallelToolCalls: false,
  output: { type: "json-schema", name: "x", schema: { type: "object" }, strict: true, path: "" },
  wantsUsage: true,
  stream: true,
  extra: { mine: 1 },
};

describe("a request that was made in code, for a server that accepts custom tools", () => {
  const body = writeChatRequest(made, { customTools: true, anyArguments: true });

  test("is written whole; falsy values survive, what is not set is absent", () => {
    expect(body).toEqual({
      model: "m",
      stream: true,
      stream_options: { include_usage: true },
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "What is it?" },
            { type: "image_url", image_url: { url: "data:image/png;base64,AA==", detail: "low" } },
          ],
        },
        {
          role: "assistant",
          content: null,
          reasoning_content: "Hm.",
          tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: '{"a":' } }],
        },
        { role: "tool", tool_call_id: "call_1", content: "42" },
      ],
      temperature: 0,
      top_p: 0.5,
      top_k: 0,
      seed: 0,
      max_tokens: 5,
      stop: ["END"],
      logprobs: true,
      top_logprobs: 0,
      tools: [
        {
          type: "function",
          function: { name: "f", description: "d", parameters: { type: "object", properties: {} }, strict: true },
        },
        { type: "custom", custom: { name: "sh" } },
        {
          type: "custom",
          custom: {
            name: "re",
            format: { type: "grammar", grammar: { syntax: "regex", definition: "a+" } },
          },
        },
      ],
      tool_choice: { type: "custom", custom: { name: "sh" } },
      parallel_tool_calls: false,
      response_format: { type: "json_schema", json_schema: { name: "x", schema: { type: "object" }, strict: true } },
      mine: 1,
    });
  });

  test("is read back as it was", () => {
    const { request } = readChatRequest({ ...body, mine: undefined, top_k: 0 }, "req_1");
    expect(request.prompt).toMatchObject({ messages: prompt.messages.map((message) => ({ ...message })) });
    expect(request).toMatchObject({
      sampling: made.sampling,
      limits: made.limits,
      tools: made.tools,
      toolChoice: made.toolChoice,
    });
  });
});

describe("for an unknown server", () => {
  // Custom tools went out as they are: vLLM and llama.cpp refused the request, and others answered with the call of a function.
  test("custom tools become functions with one text, also in the tool choice and in earlier calls", () => {
    const said: ChatPrompt = {
      ...prompt,
      messages: [
        { role: "user", content: "Hi" },
        {
          role: "assistant",
          content: [{ type: "tool-call", id: "call_1", name: "sh", arguments: 'echo "a"\n', kind: "custom" }],
        },
        { role: "tool", content: "a", toolCallId: "call_1", name: "sh" },
      ],
    };
    const noted: string[] = [];
    const body = writeChatRequest({ ...made, prompt: said }, {}, (id) => noted.push(id));
    const parameters = {
      type: "object",
      properties: { input: { type: "string" } },
      required: ["input"],
      additionalProperties: false,
    };
    const words = "Call this function with one argument, `input`: the whole text, unchanged.";
    expect(body).toMatchObject({
      tools: [
        { type: "function", function: { name: "f" } },
        { type: "function", function: { name: "sh", description: words, parameters } },
        {
          type: "function",
          function: {
            name: "re",
            description: `${words}\n\nThe text must match this regular expression:\n\na+`,
            parameters,
          },
        },
      ],
      tool_choice: { type: "function", function: { name: "sh" } },
    });
    expect((body["messages"] as unknown[])[1]).toEqual({
      role: "assistant",
      content: null,
      tool_calls: [
        { id: "call_1", type: "function", function: { name: "sh", arguments: '{"input":"echo \\"a\\"\\n"}' } },
      ],
    });
    expect(noted.toSorted()).toEqual(["custom-tool", "custom-tool", "custom-tool"]);
  });

  test("a chat client's custom tools, too; its functions keep members that are unknown here", () => {
    const came = {
      messages: [{ role: "user", content: "Hi" }],
      tools: [
        { type: "function", function: { name: "f", vendor: 1 } },
        { type: "custom", custom: { name: "sh", description: "d" } },
      ],
      tool_choice: { type: "custom", custom: { name: "sh" } },
    };
    const request = { ...made, stream: false, passthrough: { dialect: "chat", body: came } };
    const { tools, tool_choice } = writeChatRequest(request, {});
    expect(tools).toMatchObject([came.tools[0], { type: "function", function: { name: "sh" } }]);
    expect(tool_choice).toEqual({ type: "function", function: { name: "sh" } });
  });

  test("with allowed_tools, only those tools are sent", () => {
    const toolChoice = { type: "allowed", mode: "required", names: ["f", "re"] } as const;
    const { tools, tool_choice } = writeChatRequest({ ...made, toolChoice }, {});
    expect((tools as { function: { name: string } }[]).map((tool) => tool.function.name)).toEqual(["f", "re"]);
    expect(tool_choice).toBe("required");
  });

  // Codex's client_metadata and prompt_cache_key went to every chat server, and Claude Code's effort to models that do not reason.
  test("members of another API and the reasoning effort are left out", () => {
    const passthrough = { dialect: "responses", body: {} };
    const extra = { client_metadata: {}, prompt_cache_key: "k", metadata: { a: "b" } };
    const reasoning = { effort: "medium", budgetTokens: 5 };
    const noted: string[] = [];
    const body = writeChatRequest({ ...made, extra, reasoning, passthrough }, {}, (id) => noted.push(id));
    for (const name of [...Object.keys(extra), "reasoning_effort", "thinking_token_budget"])
      expect(body).not.toHaveProperty(name);
    expect(noted.filter((id) => id === "foreign-member" || id === "reasoning-effort")).toHaveLength(5);
    const known = { sharedMembers: true, reasoningEffort: true, reasoningBudget: true };
    const { client_metadata: _, ...shared } = extra;
    const written = writeChatRequest({ ...made, extra, reasoning, passthrough }, known);
    expect(written).toMatchObject({ ...shared, reasoning_effort: "medium", thinking_token_budget: 5 });
    expect(written).not.toHaveProperty("client_metadata");
  });

  test("the reasoning effort of a chat client is forwarded", () => {
    const came = { messages: [], reasoning_effort: "low" };
    expect(writeChatRequest({ ...made, passthrough: { dialect: "chat", body: came } }, {})).toMatchObject(came);
  });
});

test("a request that came as JSON is unchanged if it needs no adaptation", () => {
  const came = {
    model: "alias",
    messages: [{ role: "user", content: "Hi", cache_control: { type: "ephemeral" } }],
    vendor: { a: [null] },
  };
  const request = { ...made, stream: false, passthrough: { dialect: "chat", body: came } };
  expect(writeChatRequest(request, { model: "theirs" })).toEqual({ ...came, model: "theirs" });
  expect(came.model).toBe("alias");
});

test("stream options are left out without a stream, and usage is requested only if the client requests it", () => {
  const came = { messages: [], stream: true, stream_options: { include_usage: true, include_obfuscation: false } };
  const passthrough = { dialect: "chat", body: came };
  expect(writeChatRequest({ ...made, stream: false, passthrough }, {})).toEqual({ messages: [], model: "m" });
  expect(writeChatRequest({ ...made, wantsUsage: false, passthrough }, {})).toMatchObject({
    stream_options: { include_obfuscation: false },
  });
});
