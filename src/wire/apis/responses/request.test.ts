import { existsSync, readFileSync } from "node:fs";
import { hasRecordings, readRecordings } from "../../../../test/support/recordings.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FailureError } from "../../core/failure.ts";
import type { GenerationFailure } from "../../core/events.ts";
import type { ReadOptions } from "../port.ts";
import { exact, lean } from "../profile.ts";
import { readResponsesRequest } from "./request.ts";
import type { ReadResponsesRequest } from "./request.ts";
import { openSeal } from "../turn-seal.ts";

function read(members: Readonly<Record<string, unknown>>, options: ReadOptions = {}): ReadResponsesRequest {
  return readResponsesRequest({ model: "tiny", input: "Hi", ...members }, "req_1", options);
}

function messagesOf(input: unknown, options: ReadOptions = {}): unknown {
  const { prompt } = read({ input }, options).request;
  return prompt.kind === "chat" ? prompt.messages.map((message) => ({ ...message, path: undefined })) : undefined;
}

function refusal(members: Readonly<Record<string, unknown>>, options: ReadOptions = {}): GenerationFailure {
  try {
    read(members, options);
  } catch (error) {
    if (error instanceof FailureError) return error.failure;
    throw error;
  }
  throw new Error("It was not refused.");
}

describe("input", () => {
  test("a string is a message of the user, after the instructions", () => {
    expect(messagesOf("Hi")).toEqual([{ role: "user", content: "Hi" }]);
    const { prompt } = read({ instructions: "Be kind." }).request;
    expect(prompt).toMatchObject({ messages: [{ role: "system", content: "Be kind." }, { role: "user" }] });
  });

  test("parts of every kind", () => {
    const content = [
      { type: "input_text", text: "Look" },
      { type: "input_image", image_url: "data:image/png;base64,AA", detail: "low" },
      { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AA" },
      { type: "input_audio", input_audio: { data: "AA", format: "wav" } },
    ];
    expect(messagesOf([{ role: "user", content }])).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "Look" },
          { type: "image", url: "data:image/png;base64,AA", detail: "low" },
          { type: "file", name: "a.pdf", data: "data:application/pdf;base64,AA" },
          { type: "audio", data: "AA", format: "wav" },
        ],
      },
    ]);
  });

  // An output without call_id was refused as a missing parameter.
  test("an output that no call has asked for has a call made for it, by its name", () => {
    const input = [
      { role: "user", content: "Hi" },
      { type: "function_call_output", name: "alarm", namespace: "home", output: "It rings." },
    ];
    const call = { type: "tool-call", id: "call_unasked_1", name: "home__alarm", arguments: "{}", namespace: "home" };
    for (const profile of [lean, exact])
      expect(messagesOf(input, { profile })).toEqual([
        { role: "user", content: "Hi" },
        { role: "assistant", content: [call] },
        { role: "tool", content: "It rings.", toolCallId: "call_unasked_1", name: "home__alarm" },
      ]);
    const nameless = { type: "function_call_output", output: "x" };
    expect(refusal({ input: [nameless] })).toMatchObject({ param: "input[0].call_id", status: 400 });
  });

  // The call of an async tool has no output after it, and its output comes later, which chat servers refuse.
  test("the output of an async tool comes later, once more, or not yet", () => {
    const call = { type: "function_call", call_id: "call_1", name: "build", arguments: "{}", async: true };
    const output = (text: string) => ({ type: "function_call_output", call_id: "call_1", output: text });
    const made = (id: string) => ({ type: "tool-call", id, name: "build", arguments: "{}" });
    const result = (toolCallId: string, content: string) => ({ role: "tool", content, toolCallId, name: "build" });
    expect(messagesOf([call, output("At once.")])).toEqual([
      { role: "assistant", content: [made("call_1")] },
      result("call_1", "At once."),
    ]);
    expect(messagesOf([call, { role: "user", content: "And?" }, output("50 %"), output("Done.")])).toEqual([
      { role: "assistant", content: [made("call_1")] },
      result("call_1", "The output is not available yet."),
      { role: "user", content: "And?" },
      { role: "assistant", content: [made("call_unasked_1")] },
      result("call_unasked_1", "50 %"),
      { role: "assistant", content: [made("call_unasked_2")] },
      result("call_unasked_2", "Done."),
    ]);
  });

  // The output of the second call was taken for a further one of the first call.
  test("a call with the id of an earlier async call has the output after it", () => {
    const call = { type: "function_call", call_id: "call_1", name: "build", arguments: "{}" };
    const output = (text: string) => ({ type: "function_call_output", call_id: "call_1", output: text });
    const input = [
      { ...call, async: true },
      output("First."),
      { role: "user", content: "Go" },
      call,
      output("Second."),
    ];
    const made = { type: "tool-call", id: "call_1", name: "build", arguments: "{}" };
    const result = (content: string) => ({ role: "tool", content, toolCallId: "call_1", name: "build" });
    expect(messagesOf(input)).toEqual([
      { role: "assistant", content: [made] },
      result("First."),
      { role: "user", content: "Go" },
      { role: "assistant", content: [made] },
      result("Second."),
    ]);
  });

  // Profile exact refused the item, and lean ignored it.
  test("configuration_update: the last one wins over the request's settings", () => {
    const format = { type: "json_schema", name: "city", schema: { type: "object" } };
    const input = [
      { type: "configuration_update", reasoning: { effort: "low" }, text: { format: { type: "text" } } },
      { role: "user", content: "Hi" },
      { type: "configuration_update", id: "cfg_1", reasoning: { effort: "high" }, text: { format } },
      { type: "configuration_update", reasoning: { effort: null } },
    ];
    const { request, responseOptions } = read({ input, reasoning: { effort: "medium" } }, { profile: exact });
    expect(request.reasoning).toEqual({ effort: "high" });
    expect(request.output).toMatchObject({ type: "json-schema", name: "city", path: "input[2].text.format.schema" });
    expect(request.prompt).toMatchObject({ messages: [{ role: "user" }] });
    expect(responseOptions.echo.reasoning.effort).toBe("medium");
    const wrong = { type: "configuration_update", reasoning: { effort: "huge" } };
    expect(refusal({ input: [wrong] }, { profile: exact })).toMatchObject({ param: "input[0].reasoning.effort" });
  });

  test("breakpoints of the prompt cache have the time of their own, or the request's", () => {
    const part = (ttl?: string) => ({
      type: "input_text",
      text: "x",
      prompt_cache_breakpoint: { mode: "explicit", ttl },
    });
    const content = [part(), part("30m"), { type: "input_text", text: "y" }];
    const members = { input: [{ role: "user", content }], prompt_cache_options: { ttl: "12h" } };
    const { prompt } = read(members).request;
    expect(prompt).toMatchObject({
      messages: [{ content: [{ cacheMinutes: 720 }, { cacheMinutes: 30 }, { text: "y" }] }],
    });
    const wrong = { input: [{ role: "user", content: [part("5m")] }] };
    expect(refusal(wrong, { profile: exact })).toMatchObject({
      param: "input[0].content[0].prompt_cache_breakpoint.ttl",
      message: "Invalid value: '5m'. Supported values are: '30m' and '12h'.",
    });
    expect(read(wrong).request.prompt).toMatchObject({ messages: [{ content: [{ cacheMinutes: 30 }] }] });
  });

  test("consecutive reasoning, text and calls of the model are one message; results find their call", () => {
    const input = [
      { type: "message", role: "user", content: "Weather?" },
      { type: "reasoning", id: "rs_1", summary: [], content: [{ type: "reasoning_text", text: "Look it up." }] },
      {
        type: "message",
        role: "assistant",
        phase: "commentary",
        content: [{ type: "output_text", text: "One moment.", annotations: [] }],
      },
      { type: "function_call", call_id: "call_1", name: "weather", arguments: "{}" },
      { type: "custom_tool_call", call_id: "call_2", name: "note", input: "sunny" },
      { type: "function_call_output", call_id: "call_1", output: "18" },
      { type: "custom_tool_call_output", call_id: "call_2", output: [{ type: "input_text", text: "kept" }] },
    ];
    expect(messagesOf(input)).toEqual([
      { role: "user", content: "Weather?" },
      {
        role: "assistant",
        content: [
          { type: "reasoning", id: "rs_1", text: "Look it up." },
          { type: "text", text: "One moment.", phase: "commentary" },
          { type: "tool-call", id: "call_1", name: "weather", arguments: "{}" },
          { type: "tool-call", id: "call_2", name: "note", arguments: "sunny", kind: "custom" },
        ],
      },
      { role: "tool", toolCallId: "call_1", name: "weather", content: "18" },
      { role: "tool", toolCallId: "call_2", name: "note", content: [{ type: "text", text: "kept" }] },
    ]);
  });

  test("our own encrypted reasoning is decrypted; that of another server is left out, unless the request is forwarded", () => {
    const ours = {
      type: "reasoning",
      summary: [],
      encrypted_content: openSeal.seal({ text: "Hm", state: { kind: "signature", value: "sig" } }),
    };
    expect(messagesOf([ours])).toEqual([
      { role: "assistant", content: [{ type: "reasoning", text: "Hm", state: { kind: "signature", value: "sig" } }] },
    ]);
    const theirs = { type: "reasoning", summary: [], encrypted_content: "gAAAAABo" };
    expect(messagesOf([theirs, { role: "user", content: "Hi" }, theirs])).toEqual([{ role: "user", content: "Hi" }]);
    expect(read({ input: [theirs, theirs] }).warnings).toEqual([
      "input[0] and 1 more: reasoning that another server has encrypted cannot be read; it is left out",
    ]);
    expect(messagesOf([theirs], { forwards: true })).toEqual([
      {
        role: "assistant",
        content: [{ type: "reasoning", text: "", state: { kind: "encrypted", value: "gAAAAABo" } }],
      },
    ]);
  });

  // A server of the same API knows words that are newer than this server; each was a 400 here before it could answer.
  test("an unknown word goes along to a server of this API alone", () => {
    const members = { reasoning: { effort: "ultra", summary: "auto" }, truncation: "someday" };
    const { request, warnings } = read(members, { forwards: true });
    expect(request.reasoning).toEqual({ show: "summary" });
    expect(request.passthrough?.body).toMatchObject(members);
    expect(warnings).toEqual([
      "reasoning.effort: the value is not known here; the upstream gets it",
      "truncation: the value is not known here; the upstream gets it",
    ]);
    expect(refusal(members).param).toBe("reasoning.effort");
    expect(refusal({ reasoning: { effort: 5 } }, { forwards: true }).param).toBe("reasoning.effort");
  });

  // The AI SDK sends one for each item that it believes to be stored.
  test("references to items and items of hosted tools are left out with a warning", () => {
    const input = [
      { type: "item_reference", id: "msg_1" },
      { id: "msg_2" },
      { type: "web_search_call", id: "ws_1", status: "completed" },
      { role: "user", content: "Hi" },
    ];
    expect(messagesOf(input, { profile: exact })).toEqual([{ role: "user", content: "Hi" }]);
    expect(read({ input }).warnings).toHaveLength(2);
  });

  // An upstream of chat refused the whole conversation: each call there needs a result.
  test("a call that was cut is left out, unless it has a result", () => {
    const cut = { type: "function_call", call_id: "call_1", name: "f", arguments: '{"x', status: "incomplete" };
    const user = { role: "user", content: "Go on." };
    expect(messagesOf([cut, user])).toEqual([user]);
    expect(read({ input: [cut, user] }).warnings).toEqual([
      "input[0]: a call that was cut, and has no result, is left out",
    ]);
    const result = { type: "function_call_output", call_id: "call_1", output: "No JSON." };
    expect(messagesOf([cut, result, user])).toHaveLength(3);
    expect(messagesOf([{ ...cut, status: "completed" }, user])).toHaveLength(2);
  });

  test("an item of unknown type is an error in profile exact, a warning in lean", () => {
    const input = [{ type: "telepathy" }, { role: "user", content: "Hi" }];
    expect(messagesOf(input)).toEqual([{ role: "user", content: "Hi" }]);
    expect(refusal({ input }, { profile: exact })).toMatchObject({ param: "input[0].type", code: "invalid_value" });
  });

  test("a call of a group's tool has both names as one", () => {
    const input = [{ type: "function_call", call_id: "call_1", namespace: "files", name: "read", arguments: "{}" }];
    expect(messagesOf(input)).toEqual([
      {
        role: "assistant",
        content: [{ type: "tool-call", id: "call_1", name: "files__read", arguments: "{}", namespace: "files" }],
      },
    ]);
  });

  test.each([
    [{}, "input", "missing_required_parameter"],
    [{ input: 5 }, "input", "invalid_type"],
    [{ input: ["Hi"] }, "input[0]", "invalid_type"],
    [{ input: [{ role: "robot", content: "Hi" }] }, "input[0].role", "invalid_value"],
    [{ input: [{ role: "user" }] }, "input[0].content", "missing_required_parameter"],
    [
      { input: [{ role: "user", content: [{ type: "input_text" }] }] },
      "input[0].content[0].text",
      "missing_required_parameter",
    ],
    [{ input: [{ role: "user", content: [{ type: "smell" }] }] }, "input[0].content[0].type", "invalid_value"],
    [
      { input: [{ type: "function_call", name: "f", arguments: "{}" }] },
      "input[0].call_id",
      "missing_required_parameter",
    ],
  ])("%j is refused at %s", (members, param, code) => {
    expect(refusal({ input: undefined, ...members })).toMatchObject({ status: 400, param, code });
  });

  test("a result without a call is refused as at OpenAI, or is a warning", () => {
    const input = [{ type: "function_call_output", call_id: "call_9", output: "18" }];
    const message = "No tool call found for function call output with call_id call_9.";
    expect(refusal({ input }, { profile: exact })).toMatchObject({ message, param: "input" });
    expect(read({ input }).warnings).toEqual([`input[0]: ${message}`]);
  });
});

describe("tools", () => {
  const parameters = { type: "object", properties: { a: { type: "string" }, b: { type: "string" } }, required: ["a"] };

  test("a function is as strict as the client says; in profile exact it is strict where the client does not say", () => {
    const tool = { type: "function", name: "f", description: "F.", parameters };
    expect(read({ tools: [tool] }).request.tools).toEqual([
      { name: "f", description: "F.", parameters, path: "tools[0].parameters" },
    ]);
    const made = { ...parameters, required: ["a", "b"], additionalProperties: false };
    const { request, responseOptions } = read({ tools: [tool] }, { profile: exact });
    expect(request.tools).toMatchObject([{ parameters: made, strict: true }]);
    expect(JSON.stringify(responseOptions.echo.tools)).toBe(
      `[{"type":"function","description":"F.","name":"f","output_schema":null,"parameters":${JSON.stringify(made)},"strict":true}]`,
    );
    expect(read({ tools: [{ ...tool, strict: false }] }, { profile: exact }).request.tools).toMatchObject([
      { parameters, strict: false },
    ]);
  });

  test("a schema that is meant to be open is not made strict", () => {
    const open = { type: "object", properties: { a: { type: "object", additionalProperties: { type: "string" } } } };
    const { request } = read({ tools: [{ type: "function", name: "f", parameters: open }] }, { profile: exact });
    expect(request.tools).toEqual([{ name: "f", parameters: open, path: "tools[0].parameters" }]);
  });

  test("tools of a group are offered under both names", () => {
    const tools = [{ type: "namespace", name: "files", tools: [{ type: "function", name: "read" }] }];
    const { request, responseOptions } = read({ tools });
    expect(request.tools).toMatchObject([{ name: "files__read", namespace: "files" }]);
    expect(responseOptions.grouped.get("files__read")).toEqual({ namespace: "files", name: "read" });
    expect(
      read({ tools, tool_choice: { type: "function", namespace: "files", name: "read" } }).request.toolChoice,
    ).toEqual({
      type: "named",
      name: "files__read",
    });
  });

  // Codex offers the tools of MCP servers through its search, and the search was left out: no model could call them.
  test("a search that the client makes is a function, and what it has found can be called", () => {
    const search = { type: "tool_search", execution: "client", description: "Search.", parameters: { type: "object" } };
    const late = { type: "function", name: "late", defer_loading: true };
    const read0 = read({ tools: [search, late] });
    expect(read0.request.tools).toEqual([
      { name: "tool_search", description: "Search.", parameters: { type: "object" }, path: "tools[0].parameters" },
    ]);
    expect(read0.responseOptions).toMatchObject({ searches: true, echo: { tools: [search, { name: "late" }] } });
    expect(read0.warnings).toEqual([]);

    const inside = { type: "function", name: "next", description: "Next.", defer_loading: true };
    const found = [late, { type: "namespace", name: "trains", tools: [inside] }];
    const input = [
      { type: "tool_search_call", call_id: "call_1", execution: "client", arguments: { query: "a" } },
      { type: "tool_search_output", call_id: "call_1", execution: "client", tools: found },
    ];
    const { request, responseOptions, warnings } = read({ tools: [search, late], input });
    expect(request.tools).toMatchObject([
      { name: "tool_search" },
      { name: "late" },
      { name: "trains__next", namespace: "trains" },
    ]);
    expect(request.tools?.some(({ deferred }) => deferred)).toBe(false);
    expect(responseOptions.grouped.get("trains__next")).toEqual({ namespace: "trains", name: "next" });
    expect(request.prompt).toMatchObject({
      messages: [
        { role: "assistant", content: [{ id: "call_1", name: "tool_search", arguments: '{"query":"a"}' }] },
        {
          role: "tool",
          toolCallId: "call_1",
          name: "tool_search",
          content: '{"tools":[{"name":"late"},{"name":"trains__next","description":"Next."}]}',
        },
      ],
    });
    expect(warnings).toEqual([]);
  });

  test("without a search by the client, deferred tools are available from the start, and a search by OpenAI is left out", () => {
    const late = { type: "function", name: "late", defer_loading: true };
    const { request, warnings } = read({ tools: [{ type: "tool_search" }, late] });
    expect(request.tools).toMatchObject([{ name: "late" }]);
    expect(warnings).toEqual(["tools[0]: nothing here runs tool_search; it is left out"]);
  });

  test("tools that an item brings can be called", () => {
    const input = [{ type: "additional_tools", role: "developer", tools: [{ type: "function", name: "more" }] }];
    expect(read({ input: [...input, { role: "user", content: "Hi" }] }).request.tools).toMatchObject([
      { name: "more" },
    ]);
  });

  test("a tool that OpenAI runs is left out with a warning, and a 400 only where it is forced", () => {
    const tools = [{ type: "web_search" }, { type: "function", name: "f" }];
    const { request, warnings } = read({ tools });
    expect(request.tools).toHaveLength(1);
    expect(request.hostedTools).toEqual([
      {
        type: "web_search",
        kind: "web_search",
        name: "web_search",
        options: {},
        path: "tools[0]",
        declaration: { type: "web_search" },
      },
    ]);
    expect(warnings).toEqual(["tools[0]: nothing here runs web_search; its calls fail as unavailable"]);
    expect(refusal({ tools, tool_choice: { type: "web_search" } })).toMatchObject({
      param: "tool_choice",
      status: 400,
    });
    expect(refusal({ tools: [{ type: "web_search" }], tool_choice: "required" })).toMatchObject({
      param: "tool_choice",
    });
  });

  test("choices", () => {
    const tools = [
      { type: "function", name: "f" },
      { type: "custom", name: "g" },
    ];
    const choice = (tool_choice: unknown): unknown => read({ tools, tool_choice }).request.toolChoice;
    expect(choice("auto")).toEqual({ type: "auto" });
    expect(choice({ type: "custom", name: "g" })).toEqual({ type: "named", name: "g" });
    const allowed = [{ type: "function", name: "f" }, { type: "web_search" }];
    expect(choice({ type: "allowed_tools", mode: "required", tools: allowed })).toEqual({
      type: "allowed",
      mode: "required",
      names: ["f"],
    });
    expect(read({ tool_choice: "auto" }).request.toolChoice).toBeUndefined();
    expect(refusal({ tools, tool_choice: { type: "function", name: "h" } }).message).toBe(
      "Tool choice 'h' not found in 'tools' parameter.",
    );
    expect(refusal({ tool_choice: "required" }).message).toBe(
      "Tool choice 'required' must be specified with 'tools' parameter.",
    );
  });

  test("a custom tool has its grammar", () => {
    const format = { type: "grammar", syntax: "regex", definition: "[a-z]+" };
    expect(read({ tools: [{ type: "custom", name: "g", format }] }).request.tools).toMatchObject([
      { kind: "custom", inputGrammar: { syntax: "regex", definition: "[a-z]+" } },
    ]);
  });
});

describe("parameters", () => {
  test("have their neutral place", () => {
    const { request, responseOptions } = read({
      max_output_tokens: 40,
      temperature: 0.5,
      top_p: 0.9,
      truncation: "auto",
      reasoning: { effort: "low", summary: "auto" },
      text: { verbosity: "low", format: { type: "json_schema", name: "n", schema: { type: "object" }, strict: false } },
      include: ["message.output_text.logprobs", "reasoning.encrypted_content"],
      top_logprobs: 2,
      metadata: { a: "b" },
      stream: true,
    });
    expect(request).toMatchObject({
      limits: { maxTokens: 40, overflow: "drop-oldest" },
      sampling: { temperature: 0.5, topP: 0.9 },
      reasoning: { effort: "low", show: "summary" },
      verbosity: "low",
      output: { type: "json-schema", name: "n", path: "text.format.schema", strict: false },
      logprobs: { top: 2 },
      wantsUsage: true,
      stream: true,
    });
    expect(responseOptions).toMatchObject({ summarizes: true, encryptsReasoning: true, logprobs: true });
    expect(responseOptions.echo).toMatchObject({
      max_output_tokens: 40,
      temperature: 0.5,
      truncation: "auto",
      reasoning: { effort: "low", summary: "auto" },
      text: {
        format: { type: "json_schema", description: null, name: "n", schema: { type: "object" }, strict: false },
        verbosity: "low",
      },
      metadata: { a: "b" },
      top_logprobs: 2,
    });
  });

  test.each([
    [{ previous_response_id: "resp_x" }, "previous_response_not_found"],
    [{ prompt: { id: "pmpt_x" } }, "unsupported_parameter"],
    [{ background: "yes" }, "invalid_type"],
    [{ temperature: -1 }, "decimal_below_min_value"],
    [{ truncation: "middle" }, "invalid_value"],
    [{ text: { format: { type: "yaml" } } }, "invalid_value"],
  ])("%j is refused with %s", (members, code) => {
    expect(refusal(members)).toMatchObject({ status: 400, code });
  });

  test("an unknown conversation is a 404, as at OpenAI", () => {
    const expected = { status: 404, message: "Conversation with id 'conv_x' not found.", param: null, code: null };
    expect(refusal({ conversation: "conv_x" })).toMatchObject(expected);
    expect(refusal({ conversation: { id: "conv_x" } })).toMatchObject(expected);
    expect(refusal({ conversation: {} })).toMatchObject({ status: 400, code: "missing_required_parameter" });
  });

  test("what only chat has is refused as OpenAI does in profile exact", () => {
    expect(refusal({ stop: "." }, { profile: exact })).toMatchObject({ code: "unknown_parameter", param: "stop" });
    expect(read({ stop: "." }).request.limits.stop).toEqual(["."]);
    expect(refusal({ max_output_tokens: 1 }, { profile: exact })).toMatchObject({ code: "integer_below_min_value" });
    expect(read({ max_output_tokens: 1 }).request.limits.maxTokens).toBe(1);
  });
});

describe("any JSON body", () => {
  const word = fc.constantFrom(
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "item_reference",
    "function",
    "custom",
    "namespace",
    "grammar",
    "input_text",
    "output_text",
    "input_image",
    "user",
    "assistant",
    "auto",
    "f",
    "",
  );
  const value = fc.letrec<{ any: unknown; object: object }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 4 },
      word,
      fc.constantFrom(null, true, 1, -1, 0.5),
      fc.array(tie("any"), { maxLength: 3 }),
      tie("object"),
    ),
    object: fc.dictionary(
      fc.constantFrom(
        "type",
        "role",
        "content",
        "text",
        "name",
        "arguments",
        "call_id",
        "output",
        "summary",
        "encrypted_content",
        "id",
        "tools",
        "format",
        "syntax",
        "definition",
        "parameters",
        "properties",
        "required",
        "strict",
        "mode",
        "input",
        "__proto__",
      ),
      tie("any"),
      { maxKeys: 6, noNullPrototype: true },
    ),
  }));
  const body = fc.record(
    {
      model: fc.constant("tiny"),
      input: fc.oneof(value.any, fc.array(value.object, { maxLength: 4 })),
      instructions: value.any,
      tools: fc.oneof(value.any, fc.array(value.object, { maxLength: 3 })),
      tool_choice: value.any,
      text: fc.oneof(value.any, fc.record({ format: value.any })),
      reasoning: value.any,
      include: value.any,
      metadata: value.any,
      stream: value.any,
    },
    { requiredKeys: ["model"] },
  );

  test.each([lean, exact])("is a request or a failure in profile $name", (profile) => {
    fc.assert(
      fc.property(fc.oneof(body, fc.jsonValue()), (members) => {
        try {
          const { request } = readResponsesRequest(members, "req_1", { profile });
          expect(request.prompt.kind).toBe("chat");
        } catch (error) {
          expect(error).toBeInstanceOf(FailureError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

const captures = new URL("../../../../../shared/client-captures/codex-0.169.0.jsonl", import.meta.url);
const isHere = existsSync(captures) && hasRecordings("with requests to read");
if (!existsSync(captures)) console.log("skipped: no ../shared/client-captures to read");

describe.skipIf(!isHere)("requests of real clients", () => {
  test.each([lean, exact])("of Codex are read in profile $name", (profile) => {
    const lines = readFileSync(captures, "utf8").split("\n").filter(Boolean);
    const requests = lines.map((line) => JSON.parse(line) as { body: unknown });
    expect(requests.length).toBeGreaterThan(1);
    for (const { body } of requests) {
      const { request } = readResponsesRequest(body, "req_1", { profile });
      expect(request.tools?.some(({ namespace }) => namespace !== undefined)).toBe(true);
      expect(request.reasoning).toEqual({ show: "summary" });
    }
  });

  test("that OpenAI answered are read, but for what needs its own stores and tools", () => {
    const refused = readRecordings("responses").flatMap(({ request, name }) => {
      if (typeof request?.["model"] !== "string" || !("input" in request)) return [];
      try {
        readResponsesRequest(request, "req_1", { profile: exact });
        return [];
      } catch (error) {
        return [`${name}: ${error instanceof FailureError ? error.failure.param : String(error)}`];
      }
    });
    const ownStores = /: (previous_response_id|conversation|prompt|background|moderation)$/;
    expect(refused.filter((line) => !ownStores.test(line))).toEqual([]);
  });
});
