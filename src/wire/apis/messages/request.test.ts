import { existsSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FailureError } from "../../core/failure.ts";
import type { Message } from "../../core/message.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { exact, lean } from "../profile.ts";
import type { MessageReadOptions } from "./request.ts";
import { readMessageRequest } from "./request.ts";
import { openSeal } from "../turn-seal.ts";

type Json = { [name: string]: unknown };

const hello = { model: "m", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] };

function read(members: Json, options: MessageReadOptions = {}): GenerationRequest {
  return readMessageRequest({ ...hello, ...members }, "req_1", options).request;
}

/** The headers of a client: the version of the API and its betas. */
const headers =
  (version: string, betas?: string): ((name: string) => string | undefined) =>
  (name) =>
    name === "anthropic-version" ? version : name === "anthropic-beta" ? betas : undefined;

function refusalOf(members: Json, options: MessageReadOptions = { profile: exact }): string {
  try {
    read(members, options);
  } catch (error) {
    if (error instanceof FailureError) return `${error.failure.status} ${error.message}`;
    throw error;
  }
  return "read";
}

const says = (content: unknown, role = "user"): Json => ({ messages: [{ role, content }] });

const text = (words: string): Json => ({ type: "text", text: words });
const result = (id: string): Json => ({ type: "tool_result", tool_use_id: id, content: `result of ${id}` });
const call = (id: string): Json => ({ type: "tool_use", id, name: "f", input: {} });

/** A conversation whose assistant makes the calls t and u, followed by messages with these contents, all of the user's. */
function afterCalls(...contents: readonly unknown[]): Json {
  const replies = contents.map((content) => ({ role: "user", content }));
  return { messages: [...hello.messages, { role: "assistant", content: [call("t"), call("u")] }, ...replies] };
}

// A text before or between results became a user's message between the calls and their results: local models and chat servers refused it
// in the words of another API, with an index of the rewritten conversation; programs took it. No test had a text in that place.
describe("results come directly after their calls", () => {
  const inOrder = ["user", "assistant", "tool t", "tool u", "user"];
  const orders: [string, Json][] = [
    ["a text before the results", afterCalls([text("a"), result("t"), result("u")])],
    ["a text between the results", afterCalls([result("t"), text("a"), result("u")])],
    ["results in two messages, with a text between", afterCalls([result("t")], "a", [result("u")])],
    ["results after a message of their own", afterCalls("a", [result("t"), result("u")])],
  ];
  test.each(orders)("%s", (_, members) => {
    const { prompt } = read(members);
    const roles = prompt.kind === "chat" ? prompt.messages.map(roleOf) : [];
    expect(roles).toEqual(inOrder);
    expect(refusalOf(members)).toMatch(/^400 messages\.1: `tool_use` ids were found without/);
  });

  test("a system message between the calls and their results comes after the results", () => {
    const { messages } = afterCalls([result("t"), result("u")]) as { messages: Json[] };
    const { prompt } = read({ messages: messages.toSpliced(2, 0, { role: "system", content: "Hurry." }) });
    const roles = prompt.kind === "chat" ? prompt.messages.map(roleOf) : [];
    expect(roles).toEqual(["user", "assistant", "tool t", "tool u", "system"]);
  });

  test("a result without a call is part of the user's message", () => {
    const { prompt } = read({ messages: [{ role: "user", content: [result("t"), text("a")] }] });
    const content = [text("result of t"), text("a")];
    expect(prompt).toMatchObject({ messages: [{ role: "user", content, path: "messages.0" }] });
  });

  test("a Messages server gets the blocks in the order that Anthropic asks for", () => {
    const { passthrough } = read(afterCalls([text("a"), result("t"), text("b"), result("u")]), { forwards: true });
    const ordered = afterCalls([result("t"), result("u"), text("a"), text("b")]);
    expect(passthrough?.body).toEqual({ ...hello, ...ordered });
  });

  test("for any order of blocks: profile lean reads, with every block and the results first", () => {
    const blocks = [result("t"), result("u"), text("a"), text("b")];
    fc.assert(
      fc.property(fc.shuffledSubarray(blocks, { minLength: 4 }), fc.nat(4), (shuffled, cut) => {
        const contents = [shuffled.slice(0, cut), shuffled.slice(cut)].filter((content) => content.length > 0);
        const { prompt } = read(afterCalls(...contents));
        const messages = prompt.kind === "chat" ? prompt.messages : [];
        expect(messages.slice(2, 4).map(({ role }) => role)).toEqual(["tool", "tool"]);
        const texts = shuffled.filter(({ type }) => type === "text");
        expect(messages.slice(4)).toMatchObject([{ role: "user", content: texts }]);
      }),
    );
  });
});

function roleOf(message: Message): string {
  return message.role === "tool" ? `tool ${message.toolCallId}` : message.role;
}

describe("the conversation", () => {
  test("system prompt, texts, calls and results become neutral messages", () => {
    const { prompt } = read({
      system: [
        { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.330; cch=1234;" },
        { type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } },
      ],
      messages: [
        { role: "user", content: "a" },
        { role: "user", content: [{ type: "text", text: "b" }] },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hm.", signature: "sig" },
            { type: "redacted_thinking", data: "sealed" },
            { type: "text", text: "I look." },
            { type: "tool_use", id: "toolu_1", name: "look", input: { at: 1 }, caller: { type: "direct" } },
            { type: "tool_use", id: "toolu_2", name: "draw", input: { INVALID_JSON: "{at: 2" } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "toolu_1", content: "no such file", is_error: true },
            {
              type: "tool_result",
              tool_use_id: "toolu_2",
              content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }],
            },
            { type: "text", text: "Go on." },
          ],
        },
        { role: "system", content: "The time is 12:00." },
      ],
    });
    expect(prompt).toEqual({
      kind: "chat",
      template: {},
      messages: [
        { role: "system", content: [{ type: "text", text: "Be brief.", cacheMinutes: 5 }], path: "system" },
        {
          role: "user",
          content: [
            { type: "text", text: "a" },
            { type: "text", text: "b" },
          ],
          path: "messages.0",
        },
        {
          role: "assistant",
          content: [
            { type: "reasoning", text: "Hm.", state: { kind: "signature", value: "sig" } },
            { type: "reasoning", text: "", state: { kind: "redacted", value: "sealed" } },
            { type: "text", text: "I look." },
            { type: "tool-call", id: "toolu_1", name: "look", arguments: '{"at":1}' },
            { type: "tool-call", id: "toolu_2", name: "draw", arguments: "{at: 2" },
          ],
          path: "messages.2",
        },
        {
          role: "tool",
          content: "no such file",
          toolCallId: "toolu_1",
          name: "look",
          isError: true,
          path: "messages.3",
        },
        {
          role: "tool",
          content: [{ type: "image", url: "data:image/png;base64,AAAA" }],
          toolCallId: "toolu_2",
          name: "draw",
          path: "messages.3",
        },
        { role: "user", content: [{ type: "text", text: "Go on." }], path: "messages.3" },
        { role: "system", content: "The time is 12:00.", path: "messages.4" },
      ],
    });
  });

  test("documents keep their text", () => {
    const { prompt } = read(
      says([
        { type: "document", title: "T", context: "C", source: { type: "text", media_type: "text/plain", data: "D" } },
        { type: "document", source: { type: "content", content: [{ type: "text", text: "E" }] } },
        { type: "document", source: { type: "base64", media_type: "application/pdf", data: "AAAA" } },
        { type: "search_result", source: "s", title: "R", content: [{ type: "text", text: "F" }] },
      ]),
    );
    expect(prompt).toMatchObject({
      messages: [
        {
          content: [
            { type: "file", name: "T", text: "C\n\nD" },
            { type: "file", text: "E" },
            { type: "file", data: "data:application/pdf;base64,AAAA" },
            { type: "file", name: "R", text: "F" },
          ],
        },
      ],
    });
  });

  test("a last turn of the assistant's is continued, one that calls is not", () => {
    const messages = [
      { role: "user", content: "a" },
      { role: "assistant", content: "I say" },
    ];
    expect(read({ messages }).prompt).toMatchObject({
      template: { addGenerationPrompt: false, continueFinalMessage: true },
    });
    const calls = { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: {} }] };
    expect(read({ messages: [messages[0], calls] }).prompt).toMatchObject({ template: {} });
  });

  test("a signature of ours gives back what it carries", () => {
    const omitted = { type: "thinking", thinking: "", signature: openSeal.seal({ text: "Hm." }) };
    const sealed = {
      type: "redacted_thinking",
      data: openSeal.seal({ state: { kind: "encrypted", value: "e" }, id: "rs_1" }),
    };
    const shown = { type: "thinking", thinking: "So.", signature: openSeal.seal({}) };
    const { prompt } = read({
      messages: [
        { role: "user", content: "a" },
        { role: "assistant", content: [omitted, sealed, shown, { type: "text", text: "b" }] },
        { role: "user", content: "c" },
      ],
    });
    expect(prompt).toMatchObject({
      messages: [
        {},
        {
          content: [
            { type: "reasoning", text: "Hm." },
            { type: "reasoning", text: "", state: { kind: "encrypted", value: "e" }, id: "rs_1" },
            { type: "reasoning", text: "So." },
            { type: "text", text: "b" },
          ],
        },
        {},
      ],
    });
    expect(JSON.stringify(prompt)).not.toContain("signature");
  });
});

describe("what else is asked", () => {
  test("sampling, limits, thinking, output", () => {
    const { sampling, limits, reasoning, output, wantsUsage, stream } = read({
      max_tokens: 128_000,
      stream: true,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      stop_sequences: ["END", ""],
      thinking: { type: "enabled", budget_tokens: 2048, display: "omitted" },
      output_config: { effort: "high", format: { type: "json_schema", schema: { type: "object" } } },
    });
    expect(sampling).toEqual({ temperature: 0.5, topP: 0.9, topK: 40 });
    expect(limits).toEqual({ maxTokens: 128_000, stop: ["END"] });
    expect(reasoning).toEqual({ effort: "high", mode: "on", budgetTokens: 2048, show: "omitted" });
    expect(output).toMatchObject({
      type: "json-schema",
      schema: { type: "object" },
      path: "output_config.format.schema",
    });
    expect([wantsUsage, stream]).toEqual([true, true]);
  });

  test("a turn changes the effort", () => {
    const messages = [...hello.messages, { role: "system", content: "S", output_config: { effort: "medium" } }];
    expect(read({ messages, output_config: { effort: "high" } }).reasoning).toEqual({ effort: "medium" });
  });

  test("the choice of tools in all its forms", () => {
    const tools = [{ name: "f", description: "d", input_schema: { type: "object" }, strict: true }];
    const chosen = (tool_choice: Json) => {
      const { toolChoice, parallelToolCalls } = read({ tools, tool_choice });
      return [toolChoice, parallelToolCalls];
    };
    expect(read({ tools }).tools).toEqual([
      {
        name: "f",
        description: "d",
        parameters: { type: "object" },
        strict: true,
        path: "tools.0.custom.input_schema",
      },
    ]);
    expect(chosen({ type: "auto" })).toEqual([{ type: "auto" }, undefined]);
    expect(chosen({ type: "any", disable_parallel_tool_use: true })).toEqual([{ type: "required" }, false]);
    expect(chosen({ type: "tool", name: "f" })).toEqual([{ type: "named", name: "f" }, undefined]);
    expect(chosen({ type: "none" })).toEqual([{ type: "none" }, undefined]);
    expect(refusalOf({ tools, tool_choice: { type: "tool", name: "g" } }, {})).toBe(
      "400 Tool 'g' not found in provided tools",
    );
  });

  test("a deferred tool is there when a result has named it", () => {
    const tools = [
      { name: "search", input_schema: { type: "object" } },
      { name: "f", input_schema: { type: "object" }, defer_loading: true },
    ];
    const names = (members: Json) => read({ tools, ...members }).tools?.map(({ name }) => name);
    expect(names({})).toEqual(["search"]);
    const call = { type: "tool_use", id: "t", name: "search", input: {} };
    const result = {
      type: "tool_result",
      tool_use_id: "t",
      content: [{ type: "tool_reference", tool_name: "f" }],
    };
    const messages = [...hello.messages, { role: "assistant", content: [call] }, { role: "user", content: [result] }];
    expect(names({ messages })).toEqual(["search", "f"]);
    expect(read({ tools, messages }).prompt).toMatchObject({
      messages: [{}, {}, { content: [{ type: "text", text: "Tool f is now available." }] }],
    });
  });

  test("tools come and go in the middle of a conversation", () => {
    const tools = ["a", "b", "c"].map((name) => ({
      name,
      input_schema: { type: "object" },
      ...(name === "c" && { defer_loading: true }),
    }));
    const definition = { name: "d", input_schema: { type: "object" } };
    const system = (...content: Json[]): Json => ({ role: "system", content });
    const removal = { type: "tool_removal", tool: { type: "tool_reference", name: "a" } };
    const addition = { type: "tool_addition", tool: { type: "tool_reference", name: "c" } };
    const defining = { type: "tool_addition", tool: { type: "tool_definition", definition } };
    const { tools: there, prompt } = read({
      tools,
      messages: [...hello.messages, system(removal, addition, defining)],
    });
    expect(there?.map(({ name }) => name)).toEqual(["b", "c", "d"]);
    expect(prompt).toMatchObject({ messages: [{ role: "user" }] });
    const bad = { type: "tool_addition", tool: { type: "tool_definition", definition: { name: "d" } } };
    expect(refusalOf({ messages: [...hello.messages, system(bad)] })).toMatch(/^400 messages\.1\.content\.0\./);
  });

  // A member `definition` was read as a tool under any type, although no schema had checked it: a number became a tool without a name.
  test("only a tool_definition defines a tool", () => {
    const other = { type: "tool_addition", tool: { type: "tool_reference", name: "a", definition: 5 } };
    const messages = [...hello.messages, { role: "system", content: [other] }];
    const { tools } = read({ messages, tools: [{ name: "a", input_schema: { type: "object" } }] });
    expect(tools?.map(({ name }) => name)).toEqual(["a"]);
  });

  test("a system message that is for one turn is gone with the next", () => {
    const reminder = { role: "system", content: "Now.", clear_at: "next_user_message" };
    const messages = [...hello.messages, reminder, { role: "assistant", content: "a" }];
    expect(JSON.stringify(read({ messages }).prompt)).toContain("Now.");
    expect(JSON.stringify(read({ messages: [...messages, ...hello.messages] }).prompt)).not.toContain("Now.");
  });

  // The SDK's tool runner asks for a thread first, and sends the whole conversation only after this code.
  test.each(["thread", "compaction"])("%s: no conversation is kept here, and a code says it", (name) => {
    const code = name === "thread" ? "thread_unsupported_request" : "compaction_unavailable";
    for (const profile of [lean, exact]) {
      expect(() => read({ [name]: { type: "create" } }, { profile })).toThrow(
        expect.objectContaining({
          failure: expect.objectContaining({ details: { error_code: code }, status: 400 }) as unknown,
        }) as Error,
      );
    }
  });

  // A thread was sent to servers without threads, whose error the SDK does not know: its tool runner failed at the second turn.
  test("a thread is refused with that code for every upstream; a compaction is sent to it", () => {
    for (const profile of [lean, exact]) {
      expect(() => read({ thread: { type: "create" } }, { profile, forwards: true })).toThrow(
        expect.objectContaining({
          failure: expect.objectContaining({ details: { error_code: "thread_unsupported_request" } }) as unknown,
        }) as Error,
      );
      expect(read({ compaction: { type: "summarize" } }, { profile, forwards: true }).model).toBe("m");
    }
  });

  // Claude Code asks so with stream-json and in its terminal: every session ended with a 400.
  test.each([lean, exact])('display: "updates" is read as summarized ($name)', (profile) => {
    const thinking = { type: "adaptive", display: "updates" };
    const header = headers("2023-06-01", "a, thinking-display-updates-2026-08-18");
    expect(read({ thinking }, { profile, header }).reasoning).toEqual({ mode: "adaptive", show: "summary" });
  });

  // A server of the same API knows words that are newer than this server; each was a 400 here before it could answer.
  test.each([
    ["thinking.display", { thinking: { type: "adaptive", display: "someday" } }, { mode: "adaptive" }],
    ["thinking.type", { thinking: { type: "someday", budget_tokens: 5 } }, undefined],
    [
      "tool_choice.type",
      { tools: [{ name: "f", input_schema: { type: "object" } }], tool_choice: { type: "someday" } },
      undefined,
    ],
  ])("an unknown word at %s is sent only to a server of this API", (place, members, reasoning) => {
    const body = { ...hello, ...members };
    const { request, warnings } = readMessageRequest(body, "req_1", { forwards: true });
    expect([request.reasoning, request.toolChoice]).toEqual([reasoning, undefined]);
    expect(request.passthrough?.body).toBe(body);
    expect(warnings).toContain(`${place}: the value is not known here; the upstream gets it`);
    expect(() => readMessageRequest(body, "req_1")).toThrow(FailureError);
    const broken = { ...hello, thinking: { type: "adaptive", display: 5 } };
    expect(() => readMessageRequest(broken, "req_1", { forwards: true })).toThrow(FailureError);
  });

  test("tools of Anthropic's servers are left out, those that only its models know are refused", () => {
    const search = { type: "web_search_20250305", name: "web_search", max_uses: 8 };
    const { request, warnings } = readMessageRequest({ ...hello, tools: [search] }, "req_1");
    expect(request.hostedTools).toEqual([
      {
        type: "web_search",
        kind: "web_search",
        name: "web_search",
        options: { maxUses: 8 },
        path: "tools.0",
        declaration: search,
      },
    ]);
    expect(request.tools).toBeUndefined();
    expect(warnings).toHaveLength(1);
    for (const type of ["computer_toolset_20260801", "browser_toolset_20260801"])
      expect(refusalOf({ tools: [{ type }] }, {})).toMatch(`400 tools.0.type: '${type}' is a tool that only Anthropic`);
    expect(refusalOf({ tools: [search], tool_choice: { type: "tool", name: "web_search" } }, {})).toMatch(
      /^400 Tool 'web_search' not found/,
    );
  });

  test("tokens are counted without max_tokens", () => {
    const { max_tokens: _, ...body } = hello;
    expect(readMessageRequest(body, "req_1", { countsTokens: true }).request.limits).toEqual({});
  });

  test("how reasoning is shown", () => {
    const shown = (members: Json, profile = lean) =>
      readMessageRequest({ ...hello, ...members }, "req_1", { profile }).options.reasoning;
    expect([shown({}), shown({}, exact)]).toEqual(["shown", "hidden"]);
    expect(shown({ thinking: { type: "disabled" } })).toBe("hidden");
    expect(shown({ thinking: { type: "adaptive" } }, exact)).toBe("shown");
    expect(shown({ thinking: { type: "adaptive", display: "omitted" } })).toBe("omitted");
  });
});

describe("refusals are in Anthropic's words", () => {
  const image = (source: Json): Json =>
    says([
      { type: "text", text: "a" },
      { type: "image", source },
    ]);
  const cases: readonly (readonly [string, Json])[] = [
    ["max_tokens: Field required", { max_tokens: undefined }],
    ["max_tokens: Input should be a valid integer", { max_tokens: "many" }],
    ["messages: Field required", { messages: undefined }],
    ["messages: Input should be a valid array", { messages: null }],
    ["messages: at least one message is required", { messages: [] }],
    ["messages: Input should be a valid array", { messages: "Hello" }],
    ["messages.0: Input does not match the expected shape.", { messages: ["Hello"] }],
    [
      'messages: Unexpected role "tool". Allowed roles are "user" or "assistant"',
      { messages: [{ role: "tool", content: "" }] },
    ],
    ["messages.0.content: Field required", { messages: [{ role: "user" }] }],
    ["messages.0.content: Input should be a valid array", says(5)],
    ["messages.0.content.0.type: Field required", says([{ text: "a" }])],
    ["messages.0.content.0.text.text: Field required", says([{ type: "text" }])],
    ["messages.0.content.0.text.txt: Extra inputs are not permitted", says([{ type: "text", text: "a", txt: "" }])],
    ["messages.0.content.1.image.source.type: Field required", image({})],
    [
      "messages.0.content.1.image.source.base64.data: Field required",
      image({ type: "base64", media_type: "image/png" }),
    ],
    ["messages.0.content.0.tool_result.tool_use_id: Field required", says([{ type: "tool_result", content: "a" }])],
    ["temperature: range: 0..1", { temperature: 1.5 }],
    [
      "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
      { thinking: { type: "enabled", budget_tokens: 1 } },
    ],
    [
      "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size",
      { thinking: { type: "enabled", budget_tokens: 2000 } },
    ],
    [
      "tools.0.custom.input_schema.type: Input should be 'object'",
      { tools: [{ name: "f", input_schema: { type: "string" } }] },
    ],
    [
      "tools.1.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn more about tool use at https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview.",
      {
        tools: [
          { name: "f", input_schema: { type: "object", properties: { type: { type: "string" } } } },
          { name: "g", input_schema: { type: "object", properties: { a: { type: "nope" } } } },
        ],
      },
    ],
    [
      "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
      { output_config: { format: { type: "json_schema", schema: { type: "object", properties: {} } } } },
    ],
    ["tools.0.custom.input_schema.type: Field required", { tools: [{ name: "f", input_schema: {} }] }],
    ["tools.0.custom.name: Field required", { tools: [{ input_schema: { type: "object" } }] }],
    ["frequency_penalty: Extra inputs are not permitted", { frequency_penalty: 1 }],
    ["messages.0: user messages must have non-empty content", says("")],
    [
      "messages.0: `tool_use` blocks can only be in `assistant` messages",
      says([{ type: "tool_use", id: "t", name: "f", input: {} }]),
    ],
    [
      "messages.0: unexpected `tool_use_id` found in `tool_result` blocks: t. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
      says([{ type: "tool_result", tool_use_id: "t" }]),
    ],
    [
      "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
      {
        messages: [
          ...hello.messages,
          { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: {} }] },
          ...hello.messages,
        ],
      },
    ],
    [
      "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t, u. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
      afterCalls([text("It says:"), result("t"), result("u")]),
    ],
    [
      "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: u. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
      afterCalls([result("t"), text("and"), result("u")]),
    ],
    [
      "messages: final assistant content cannot end with trailing whitespace",
      { messages: [...hello.messages, { role: "assistant", content: "I " }] },
    ],
  ];
  test.each(cases)("%s", (words, members) => {
    expect(refusalOf(members)).toBe(`400 ${words}`);
  });

  test("an unknown block names those that there are", () => {
    expect(refusalOf(says([{ type: "input_text", text: "a" }]))).toMatch(
      /^400 messages\.0\.content\.0: Input tag 'input_text' found using 'type' does not match any of the expected tags: 'advisor_tool_result', .*'web_search_tool_result'$/,
    );
  });

  test("a body that is no object", () => {
    for (const body of [null, 5, "a", []]) {
      expect(() => readMessageRequest(body, "req_1")).toThrow("body: Input should be a valid dictionary");
    }
  });

  test("profile exact wants the version's header", () => {
    const header = () => undefined;
    expect(refusalOf({}, { profile: exact, header })).toBe("400 anthropic-version: header is required");
    expect(refusalOf({}, { profile: lean, header })).toBe("read");
    expect(refusalOf({}, { profile: exact, header: () => "2023-06-01" })).toBe("read");
  });
});

describe("versions and betas", () => {
  const says = (...messages: Json[]): Json => ({ messages: [...hello.messages, ...messages, ...hello.messages] });
  const report = { type: "document", title: "T", source: { type: "text", media_type: "text/plain", data: "D" } };
  const cited = { type: "text", text: "a", citations: [{ type: "char_location" }] };
  const search = { type: "search_result", source: "s", title: "t", content: [cited] };
  const assistant = (...content: Json[]): Json => ({ role: "assistant", content });
  const user = (...content: Json[]): Json => ({ role: "user", content });

  test.each<[string, Json]>([
    ["temperature: Extra inputs are not permitted", { temperature: 1 }],
    ["top_p: Extra inputs are not permitted", { top_p: 0.5 }],
    ["top_k: Extra inputs are not permitted", { top_k: 1 }],
    ["messages.1: `document` blocks can only be in `user` messages", says(assistant(report))],
    ["messages.1.content.0.text.citations: Extra inputs are not permitted", says(user(cited))],
    ["messages.1.content.0.search_result.content.0.text.citations: Extra inputs are not permitted", says(user(search))],
  ])("version 2026-10-21 in profile exact: %s", (words, members) => {
    const header = headers("2026-10-21");
    expect(refusalOf(members, { profile: exact, header })).toBe(`400 ${words}`);
    // An upstream of this API judges requests itself.
    expect(refusalOf(members, { profile: exact, header, forwards: true })).toBe("read");
    expect(refusalOf(members, { profile: lean, header })).toBe("read");
    for (const version of ["2023-01-01", "2023-06-01"])
      expect(refusalOf(members, { profile: exact, header: headers(version) })).toBe("read");
  });

  test("version 2026-10-21 keeps the citations of assistants' texts, empty ones, and those of documents", () => {
    const enabled = { enabled: true };
    const members = says(
      assistant(cited),
      user(
        { ...cited, citations: [] },
        { ...report, citations: enabled },
        { ...search, content: [], citations: enabled },
      ),
    );
    expect(refusalOf(members, { profile: exact, header: headers("2026-10-21") })).toBe("read");
  });

  // Every version refused them.
  test("a document of the assistant is a text of its message", () => {
    const { prompt } = read(says(assistant(report, { type: "text", text: "b" })));
    expect(prompt).toMatchObject({
      messages: [
        {},
        {
          role: "assistant",
          content: [
            { type: "text", text: "T\n\nD" },
            { type: "text", text: "b" },
          ],
        },
        {},
      ],
    });
  });

  test("an unknown version is refused in profile exact, and a warning in lean", () => {
    for (const version of ["2023-10-01", "2023-06-01, 2023-06-01", "2099-01-01", ""]) {
      const words = `anthropic-version: "${version}" is not a valid version`;
      expect(refusalOf({}, { profile: exact, header: headers(version) })).toBe(`400 ${words}`);
      expect(readMessageRequest(hello, "req_1", { header: headers(version) }).warnings).toEqual([words]);
    }
  });

  const binding = { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } };
  const definition = { name: "d", input_schema: { type: "object" } };
  const addition = { type: "tool_addition", tool: { type: "tool_definition", definition } };
  test.each<[string, string, Json]>([
    [
      "thinking-display-updates-2026-08-18",
      "thinking.adaptive.display: Input should be 'summarized' or 'omitted'",
      { thinking: { type: "adaptive", display: "updates" } },
    ],
    [
      "thinking-binding-controls-2026-08-01",
      "thinking.adaptive.block_binding: Extra inputs are not permitted",
      { thinking: binding },
    ],
    [
      "inline-tools-2026-09-15",
      "messages.1.content.1: `tool_addition` blocks require anthropic-beta: inline-tools-2026-09-15",
      says({ role: "system", content: [{ type: "text", text: "a" }, addition] }),
    ],
    [
      "mid-conversation-system-clear-at-2026-08-21",
      "messages.1.clear_at: Extra inputs are not permitted",
      says({ role: "system", content: "a", clear_at: "never" }),
    ],
  ])("profile exact requires the beta %s", (beta, words, members) => {
    expect(refusalOf(members, { profile: exact, header: headers("2023-06-01", "other") })).toBe(`400 ${words}`);
    expect(refusalOf(members, { profile: exact, header: headers("2023-06-01", `other,${beta}`) })).toBe("read");
    expect(refusalOf(members, { profile: exact, header: headers("2023-06-01"), forwards: true })).toBe("read");
    expect(refusalOf(members, { profile: lean, header: headers("2026-10-21") })).toBe("read");
  });
});

test("profile lean serves what Anthropic refuses, and says so in the log", () => {
  const { warnings } = readMessageRequest(
    {
      ...hello,
      frequency_penalty: 1,
      temperature: 1.5,
      thinking: { type: "enabled", budget_tokens: 500 },
      messages: [
        {
          role: "user",
          content: [
            { type: "from_2027", what: 1 },
            { type: "text", text: "a", also: true },
          ],
        },
        {
          role: "assistant",
          content: [{ type: "server_tool_use", id: "s", name: "tool_search_tool_regex", input: {} }],
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "gone" }] },
      ],
    },
    "req_1",
  );
  expect(warnings.map((line) => line.slice(0, 40))).toEqual([
    'messages: blocks of type "from_2027" are',
    "Anthropic would answer 400: frequency_pe",
    "Anthropic would answer 400: messages.2: ",
    "Anthropic would answer 400: `max_tokens`",
    "Anthropic would answer 400: `temperature",
    "Anthropic would answer 400: messages.1.c",
    "messages: server_tool_use blocks are of ",
  ]);
});

test("for any JSON: a request, or a refusal in Anthropic's form", () => {
  const type = fc.constantFrom("text", "tool_result", "tool_use", "image", "document", "thinking", "server_tool_use");
  const member = fc.constantFrom(
    "type",
    "text",
    "content",
    "source",
    "input",
    "tool_use_id",
    "id",
    "name",
    "__proto__",
  );
  const block = fc.dictionary(member, fc.oneof(type, fc.jsonValue({ maxDepth: 2 })));
  const message = fc.record(
    { role: fc.constantFrom("user", "assistant", "system"), content: fc.oneof(fc.string(), fc.array(block)) },
    { requiredKeys: [] },
  );
  const names = [
    "model",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "stop_sequences",
  ];
  const members = fc.dictionary(fc.constantFrom(...names, "top_k", "__proto__"), fc.jsonValue({ maxDepth: 3 }));
  const body = fc.oneof(
    fc.jsonValue(),
    fc.tuple(members, fc.array(message)).map(([members, messages]) => ({ ...hello, ...members, messages })),
    fc.array(block).map((tools) => ({ ...hello, tools })),
  );
  fc.assert(
    fc.property(body, fc.constantFrom(lean, exact), (body, profile) => {
      try {
        expect(readMessageRequest(body, "req_1", { profile }).request.model).toBeTypeOf("string");
      } catch (error) {
        expect(error).toBeInstanceOf(FailureError);
        expect((error as FailureError).message).toMatch(/^[a-z_.\d-]+.*: ./s);
      }
    }),
    { numRuns: 2000 },
  );
});

test("an input that is nested beyond what can be written is refused", () => {
  const input: unknown = JSON.parse(`{"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}`);
  const messages = [
    ...hello.messages,
    { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input }] },
  ];
  expect(refusalOf({ messages }, {})).toMatch(/^400 messages\.1: the input of a `tool_use` block is nested too deeply/);
});

const captures = new URL("../../../../../shared/client-captures/", import.meta.url);
const isHere = existsSync(captures);
if (!isHere) console.log("skipped: no ../shared/client-captures to read");

test.skipIf(!isHere)("what Claude Code sends is read", () => {
  const files = [
    "claude-code-2.1.233-recorded.jsonl",
    "claude-code-2.1.330.jsonl",
    "claude-code-2.1.330-max-tokens.jsonl",
  ];
  let count = 0;
  for (const file of files) {
    for (const line of readFileSync(new URL(file, captures), "utf8").split("\n").filter(Boolean)) {
      const { body } = JSON.parse(line) as { body?: Json };
      if (body?.["messages"] === undefined || !Array.isArray(body["messages"])) continue;
      count++;
      const { request } = readMessageRequest(body, "req_1");
      expect(JSON.stringify(request.prompt)).not.toContain("x-anthropic-billing-header");
    }
  }
  expect(count).toBeGreaterThan(5);
});

// Only a local model refused such images, in words of its own; programs and doubles took them.
describe("profile exact refuses the images that Anthropic refuses", () => {
  const png = "iVBORw0KGgoAAAANSUhEUg==";
  const image = (media_type: string, data: string): Json => ({
    type: "image",
    source: { type: "base64", media_type, data },
  });
  const other = "messages.0.content.0.image.source.base64";
  const refused: [string, Json, string][] = [
    [
      "another type",
      says([image("image/svg+xml", png)]),
      `400 ${other}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'`,
    ],
    [
      "a type that the file does not have",
      says([image("image/jpeg", png)]),
      `400 ${other}.data: Image does not match the provided media type image/jpeg`,
    ],
    [
      "too many bytes",
      says([image("image/png", png + "A".repeat(10 * 2 ** 20))]),
      `400 ${other}: image exceeds 10 MB maximum: 10485784 bytes > 10485760 bytes`,
    ],
    [
      "in the result of a tool",
      afterCalls([{ ...result("t"), content: [text("a"), image("image/bmp", png)] }, result("u")]),
      "400 messages.2.content.0.tool_result.content.1.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
    ],
  ];
  test.each(refused)("%s", (_, members, message) => {
    expect(refusalOf(members)).toBe(message);
    expect(refusalOf(members, { profile: lean })).toBe("read");
  });
  test("and takes others", () => {
    expect(refusalOf(says([image("image/png", png)]))).toBe("read");
  });
});
