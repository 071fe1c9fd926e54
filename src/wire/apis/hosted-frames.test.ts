import { describe, expect, test } from "vitest";
import { Accumulator, accumulate } from "../core/accumulate.ts";
import type { GenerationEvent } from "../core/events.ts";
import { hostedFailure } from "../core/hosted-result.ts";
import type { HostedCallIdentity, HostedResult } from "../core/hosted-tool.ts";
import type { Message } from "../core/message.ts";
import { readChatRequest } from "./chat/request.ts";
import { ChatStreamWriter } from "./chat/write-stream.ts";
import { readMessageRequest } from "./messages/request.ts";
import { writeMessageResponse } from "./messages/write.ts";
import type { MessageContext } from "./messages/write.ts";
import { MessageStreamWriter } from "./messages/write-stream.ts";
import { exact, lean } from "./profile.ts";
import { readResponsesRequest } from "./responses/request.ts";
import { ResponseObject } from "./responses/response-object.ts";
import { writeResponse } from "./responses/response-writer.ts";
import { ResponseStreamWriter } from "./responses/stream-writer.ts";
import { openSeal } from "./turn-seal.ts";

/* The frames of hosted calls in each API: in streams, in whole answers, and in the next turn. */

const search: HostedCallIdentity = { id: "c1", kind: "web_search", tool: "web_search", name: "web_search" };
const found: HostedResult = {
  kind: "search",
  results: [{ url: "https://a.example/", title: "A", text: "It rains.", age: "1 day ago" }],
};

function called(call: HostedCallIdentity, text: string, result: HostedResult): GenerationEvent[] {
  return [
    { type: "hosted-call-start", choice: 0, ...call },
    { type: "hosted-call-delta", choice: 0, id: call.id, arguments: text },
    { type: "hosted-call-end", choice: 0, id: call.id },
    { type: "hosted-result", choice: 0, ...call, result },
  ];
}

function answer(...events: readonly GenerationEvent[]): GenerationEvent[] {
  return [
    { type: "start", choice: 0 },
    ...events,
    { type: "text-delta", choice: 0, text: "Rain." },
    { type: "usage", usage: { promptTokens: 9, completionTokens: 3 } },
    { type: "finish", choice: 0, reason: "stop" },
    { type: "end", end: { kind: "done" } },
  ];
}

/** The events of a stream as `[name, data]`. */
function frames(text: string): [string, Record<string, unknown>][] {
  return text
    .split("\n\n")
    .filter(Boolean)
    .map((frame) => {
      const [name = "", data = ""] = frame.split("\ndata: ");
      return [name.slice("event: ".length), JSON.parse(data) as Record<string, unknown>];
    });
}

describe("Messages", () => {
  const context: MessageContext = {
    profile: exact,
    created: 0,
    model: "m",
    settings: {},
    random: Math.random,
    turnSeal: openSeal,
    id: "msg_01",
    options: { requestId: "req_1", reasoning: "shown" },
  };

  function blocks(events: readonly GenerationEvent[]): Record<string, unknown>[] {
    const body = JSON.parse(writeMessageResponse(accumulate(events), context)) as {
      content: Record<string, unknown>[];
    };
    return body.content;
  }

  test("a search is a server_tool_use, its result, and a text, in a stream and in a whole message", () => {
    const events = answer(...called(search, '{"query":"rain"}', found));
    const written = frames(new MessageStreamWriter(context).write(events));
    expect(written.map(([name]) => name)).toEqual([
      "message_start",
      "content_block_start",
      "ping",
      "content_block_delta",
      "content_block_delta",
      "content_block_stop",
      "content_block_start",
      "content_block_stop",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    const { id } = (written[1]?.[1]["content_block"] ?? {}) as { id?: string };
    expect(id).toMatch(/^srvtoolu_01/);
    const result = {
      type: "web_search_tool_result",
      tool_use_id: id,
      content: [
        {
          type: "web_search_result",
          title: "A",
          url: "https://a.example/",
          encrypted_content: openSeal.seal({ text: "It rains." }),
          page_age: "1 day ago",
        },
      ],
    };
    expect(written[1]?.[1]["content_block"]).toEqual({ type: "server_tool_use", id, name: "web_search", input: {} });
    expect(written[6]?.[1]["content_block"]).toEqual(result);
    expect(written.at(-2)?.[1]["usage"]).toMatchObject({
      server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 },
    });
    const [use, ...others] = blocks(events);
    expect(use).toMatchObject({ type: "server_tool_use", name: "web_search", input: { query: "rain" } });
    expect(others).toEqual([
      { ...result, tool_use_id: use?.["id"] },
      { type: "text", text: "Rain." },
    ]);
  });

  test.each<[string, HostedCallIdentity, HostedResult, unknown]>([
    [
      "a fetched page",
      { id: "f", kind: "web_fetch", tool: "web_fetch", name: "web_fetch" },
      {
        kind: "document",
        url: "https://a.example/",
        title: "A",
        mediaType: "text/plain",
        content: { text: "Rain" },
        retrieved: "2026-11-30T10:00:00Z",
      },
      {
        type: "web_fetch_tool_result",
        content: {
          type: "web_fetch_result",
          url: "https://a.example/",
          retrieved_at: "2026-11-30T10:00:00Z",
          content: {
            type: "document",
            source: { type: "text", media_type: "text/plain", data: "Rain" },
            title: "A",
          },
        },
      },
    ],
    [
      "a call to an MCP server",
      { id: "m", kind: "mcp", tool: "docs", name: "read" },
      { kind: "contents", contents: [{ type: "text", text: "42" }], isError: false },
      { type: "mcp_tool_result", is_error: false, content: [{ type: "text", text: "42" }] },
    ],
    [
      "output of code",
      { id: "x", kind: "code_interpreter", tool: "code_execution", name: "code_interpreter" },
      { kind: "code", stdout: "2\n", stderr: "", returnCode: 0 },
      {
        type: "code_execution_tool_result",
        content: { type: "code_execution_result", stdout: "2\n", stderr: "", return_code: 0, content: [] },
      },
    ],
    [
      "an error",
      search,
      hostedFailure("max-uses-exceeded"),
      {
        type: "web_search_tool_result",
        content: { type: "web_search_tool_result_error", error_code: "max_uses_exceeded" },
      },
    ],
    [
      "an error that the tool does not have at Anthropic",
      search,
      hostedFailure("timeout"),
      { type: "web_search_tool_result", content: { type: "web_search_tool_result_error", error_code: "unavailable" } },
    ],
  ])("%s", (_, call, result, expected) => {
    const [use, block] = blocks(answer(...called(call, "{}", result)));
    expect(block).toEqual({ ...(expected as object), tool_use_id: use?.["id"] });
    expect(use).toMatchObject(
      call.kind === "mcp" ? { type: "mcp_tool_use", name: "read", server_name: "docs" } : { type: "server_tool_use" },
    );
  });

  test("the functions of an MCP server are a block, unless their list failed", () => {
    const list = { type: "hosted-functions", choice: 0, id: "l", tool: "docs" } as const;
    const functions = [{ name: "read", description: "Reads", parameters: { type: "object" } }, { name: "write" }];
    const events = answer({ ...list, functions });
    const block = {
      type: "mcp_tool_listing",
      mcp_server_name: "docs",
      tools: [
        { name: "read", description: "Reads", input_schema: { type: "object" } },
        { name: "write", description: null, input_schema: { type: "object", properties: {} } },
      ],
    };
    expect(blocks(events)[0]).toEqual(block);
    expect(frames(new MessageStreamWriter(context).write(events))[1]?.[1]).toMatchObject({ content_block: block });
    expect(blocks(answer({ ...list, functions: hostedFailure("timeout") }))).toHaveLength(1);
  });

  test("parallel calls come before their results", () => {
    const other = { ...search, id: "c2" };
    const [start, delta, end, result] = called(search, "{}", found);
    const [start2, delta2, end2, result2] = called(other, "{}", found);
    const events = [start, delta, end, start2, delta2, end2, result, result2].flatMap((event) => event ?? []);
    const [one, two, first, second] = blocks(answer(...events));
    expect([first?.["tool_use_id"], second?.["tool_use_id"]]).toEqual([one?.["id"], two?.["id"]]);
    expect(one?.["id"]).not.toBe(two?.["id"]);
  });

  test("a paused answer has the stop reason pause_turn", () => {
    const events: GenerationEvent[] = [
      { type: "start", choice: 0 },
      ...called(search, "{}", found),
      { type: "finish", choice: 0, reason: "stop", paused: true },
      { type: "end", end: { kind: "done" } },
    ];
    const written = frames(new MessageStreamWriter(context).write(events));
    expect(written.at(-2)?.[1]["delta"]).toMatchObject({ stop_reason: "pause_turn" });
    expect(JSON.parse(writeMessageResponse(accumulate(events), context))).toMatchObject({ stop_reason: "pause_turn" });
  });

  test("the next turn has the calls and what the model has read, as the round before it had them", () => {
    const events = answer(
      { type: "text-delta", choice: 0, text: "Let me look." },
      ...called(search, '{"query":"rain"}', found),
    );
    const content = blocks(events);
    const sent = [
      { role: "user", content: "Weather?" },
      { role: "assistant", content },
      { role: "user", content: "Thanks" },
    ];
    const { request, warnings } = readMessageRequest({ model: "m", max_tokens: 9, messages: sent }, "");
    const messages = request.prompt.kind === "chat" ? request.prompt.messages : [];
    expect(warnings).toEqual([]);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
    expect(messages[1]?.content).toMatchObject([
      { type: "text", text: "Let me look." },
      { type: "tool-call", name: "web_search", arguments: '{"query":"rain"}' },
    ]);
    expect(messages[2]).toMatchObject({ name: "web_search", toolCallId: content[1]?.["id"] });
    expect(messages[2]?.content).toContain("[1] A\nURL: https://a.example/\nAge: 1 day ago\nIt rains.");
  });

  test("a call without a result runs if the answer was paused, and has failed otherwise", () => {
    const use = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "q" } };
    const read = (more: readonly unknown[]): readonly Message[] => {
      const messages = [{ role: "user", content: "a" }, { role: "assistant", content: [use] }, ...more];
      const { prompt } = readMessageRequest({ model: "m", max_tokens: 9, messages }, "").request;
      return prompt.kind === "chat" ? prompt.messages : [];
    };
    expect(read([]).at(-1)).toMatchObject({ role: "assistant", content: [{ type: "tool-call", id: "srvtoolu_1" }] });
    expect(read([{ role: "user", content: "b" }])[2]).toMatchObject({ role: "tool", isError: true });
  });
});

describe("Responses", () => {
  const at = { profile: lean, created: 1_790_000_000, model: "m", settings: {}, random: () => 0.5, turnSeal: openSeal };

  function options(more: object = {}) {
    return readResponsesRequest({ model: "m", input: "Hi", ...more }, "").responseOptions;
  }

  function stream(events: readonly GenerationEvent[], more?: object): [string, Record<string, unknown>][] {
    return frames(
      new ResponseStreamWriter(new ResponseObject(at, options(more), "stream"))
        .write(events)
        .replace("data: [DONE]\n\n", ""),
    );
  }

  function items(events: readonly GenerationEvent[], more?: object): Record<string, unknown>[] {
    const accumulator = new Accumulator();
    accumulator.add(events);
    return (JSON.parse(writeResponse(accumulator.result(), at, options(more))) as { output: Record<string, unknown>[] })
      .output;
  }

  test("a search has its progress between its item's beginning and end", () => {
    const events = answer(...called(search, '{"query":"rain"}', found));
    const written = stream(events, { include: ["web_search_call.action.sources"] });
    expect(written.slice(2, 7).map(([name]) => name)).toEqual([
      "response.output_item.added",
      "response.web_search_call.in_progress",
      "response.web_search_call.searching",
      "response.web_search_call.completed",
      "response.output_item.done",
    ]);
    expect(written.map(([, { sequence_number: number }]) => number)).toEqual(written.map((_, index) => index));
    const item = written[6]?.[1]["item"] as { id: string };
    expect(item).toEqual({
      id: item.id,
      type: "web_search_call",
      status: "completed",
      action: {
        type: "search",
        queries: ["rain"],
        query: "rain",
        sources: [{ type: "url", url: "https://a.example/" }],
      },
    });
    const whole = written.at(-1)?.[1]["response"] as { output: { type: string }[] };
    expect(whole.output.map(({ type }) => type)).toEqual(["web_search_call", "message"]);
    expect(items(events)).toMatchObject([{ type: "web_search_call", status: "completed" }, { type: "message" }]);
  });

  test("parallel calls are items one after the other", () => {
    const other = { ...search, id: "c2" };
    const [start, delta, end, result] = called(search, '{"query":"a"}', found);
    const [start2, delta2, end2, result2] = called(other, '{"query":"b"}', found);
    const events = [start, delta, end, start2, delta2, end2, result, result2].flatMap((event) => event ?? []);
    const written = stream(answer(...events)).filter(([name]) => name.startsWith("response.output_item"));
    expect(written.map(([name, { output_index: index }]) => `${name.slice(21)} ${String(index)}`)).toEqual([
      "added 0",
      "done 0",
      "added 1",
      "done 1",
      "added 2",
      "done 2",
    ]);
  });

  test("MCP: the list of functions, calls, their errors, and requests for approval", () => {
    const call: HostedCallIdentity = { id: "m", kind: "mcp", tool: "docs", name: "read" };
    const events = answer(
      { type: "hosted-functions", choice: 0, id: "l", tool: "docs", functions: [{ name: "read", readOnly: true }] },
      ...called(call, '{"a":1}', { kind: "contents", contents: [{ type: "text", text: "42" }], isError: false }),
      ...called({ ...call, id: "n" }, "{}", hostedFailure("protocol-error", "Method not found")),
      { type: "hosted-approval", choice: 0, ...call, id: "o", arguments: "{}" },
    );
    const written = stream(events);
    expect(written.slice(2, -6).map(([name]) => name.slice("response.".length))).toEqual([
      "output_item.added",
      "mcp_list_tools.in_progress",
      "mcp_list_tools.completed",
      "output_item.done",
      "output_item.added",
      "mcp_call.in_progress",
      "mcp_call_arguments.delta",
      "mcp_call_arguments.done",
      "mcp_call.completed",
      "output_item.done",
      "output_item.added",
      "mcp_call.in_progress",
      "mcp_call_arguments.delta",
      "mcp_call_arguments.done",
      "mcp_call.failed",
      "output_item.done",
      "output_item.added",
      "output_item.done",
      "output_item.added",
    ]);
    expect(items(events)).toMatchObject([
      { type: "mcp_list_tools", server_label: "docs", tools: [{ name: "read", annotations: { read_only: true } }] },
      { type: "mcp_call", arguments: '{"a":1}', error: null, name: "read", output: "42", server_label: "docs" },
      { type: "mcp_call", output: null, error: { type: "mcp_protocol_error", message: "Method not found" } },
      { type: "mcp_approval_request", arguments: "{}", name: "read", server_label: "docs" },
      { type: "message" },
    ]);
  });

  test("code is streamed as text, its output shown only on request", () => {
    const call: HostedCallIdentity = {
      id: "x",
      kind: "code_interpreter",
      tool: "code_interpreter",
      name: "code_interpreter",
    };
    const events = answer(
      ...called(call, '{"code":"print(2)"}', { kind: "code", stdout: "2\n", stderr: "", returnCode: 0 }),
    );
    const written = stream(events);
    expect(written.slice(2, 9).map(([name]) => name.slice("response.".length))).toEqual([
      "output_item.added",
      "code_interpreter_call.in_progress",
      "code_interpreter_call_code.delta",
      "code_interpreter_call_code.done",
      "code_interpreter_call.interpreting",
      "code_interpreter_call.completed",
      "output_item.done",
    ]);
    expect(written[4]?.[1]).toMatchObject({ delta: "print(2)" });
    expect(items(events)[0]).toMatchObject({ code: "print(2)", outputs: null });
    expect(items(events, { include: ["code_interpreter_call.outputs"] })[0]).toMatchObject({
      outputs: [{ type: "logs", logs: "2\n" }],
    });
  });

  test("a call that failed, and one whose answer ended before its result", () => {
    const failed = items(answer(...called(search, "{}", hostedFailure("unavailable"))));
    expect(failed[0]).toMatchObject({ type: "web_search_call", status: "failed" });
    const cut = answer(...called(search, "{}", found).slice(0, 3));
    expect(items(cut)[0]).toMatchObject({ status: "incomplete" });
    const done = stream(cut).find(([name]) => name === "response.output_item.done");
    expect(done?.[1]["item"]).toMatchObject({ type: "web_search_call", status: "incomplete" });
  });

  test("the next turn has what the model has read, of items that this server has stored", () => {
    const response = new ResponseObject(at, options(), "body");
    const writer = new ResponseStreamWriter(response);
    writer.write(answer(...called(search, '{"query":"rain"}', found)));
    const [item] = writer.output.map((one) => JSON.parse(JSON.stringify(one)) as Record<string, unknown>);
    const id = String(item?.["id"]);
    const stored = { ...item, encrypted_content: response.encrypted[id] };
    const { request } = readResponsesRequest({ model: "m", input: [{ role: "user", content: "a" }, stored] }, "");
    const messages = request.prompt.kind === "chat" ? request.prompt.messages : [];
    expect(messages.slice(1)).toMatchObject([
      { role: "assistant", content: [{ type: "tool-call", name: "web_search", arguments: '{"query":"rain"}' }] },
      { role: "tool", toolCallId: "c1", name: "web_search" },
    ]);
    expect(messages[2]?.content).toContain("It rains.");
  });

  // The call had the id of its item in the next turn, and OpenAI refused the reasoning before it, which is bound to the call.
  test("a call has the id that its source gave it, and a call of an MCP server, too", () => {
    const response = new ResponseObject(at, options(), "body");
    const writer = new ResponseStreamWriter(response);
    const mcp: HostedCallIdentity = { id: "call_7", kind: "mcp", tool: "docs", name: "read" };
    const result: HostedResult = { kind: "contents", contents: [{ type: "text", text: "42" }], isError: false };
    writer.write(answer(...called(search, "{}", found), ...called(mcp, "{}", result)));
    const stored = writer.output.map((one) => {
      const item = JSON.parse(JSON.stringify(one)) as { id: string };
      return { ...item, encrypted_content: response.encrypted[item.id] };
    });
    const { prompt } = readResponsesRequest({ model: "m", input: stored.slice(0, 2) }, "").request;
    expect(prompt.kind === "chat" && prompt.messages).toMatchObject([
      { content: [{ type: "tool-call", id: "c1" }] },
      { role: "tool", toolCallId: "c1" },
      { content: [{ type: "tool-call", id: "call_7" }] },
      { role: "tool", toolCallId: "call_7", content: "42" },
    ]);
  });

  test("an image comes with its earlier states, and the next turn has what the model has read", () => {
    const image: HostedCallIdentity = {
      id: "i1",
      kind: "image_generation",
      tool: "image_generation",
      name: "image_generation",
    };
    const result: HostedResult = {
      kind: "image",
      url: "data:image/webp;base64,BBBB",
      revisedPrompt: "A cat",
      partial: ["data:image/webp;base64,AAAA"],
    };
    const events = answer(...called(image, '{"prompt":"cat"}', result));
    const written = stream(events);
    expect(written.slice(2, 8).map(([name]) => name)).toEqual([
      "response.output_item.added",
      "response.image_generation_call.in_progress",
      "response.image_generation_call.generating",
      "response.image_generation_call.partial_image",
      "response.image_generation_call.completed",
      "response.output_item.done",
    ]);
    expect(written[2]?.[1]["item"]).toMatchObject({ status: "in_progress", result: null });
    expect(written[5]?.[1]).toMatchObject({ partial_image_b64: "AAAA", partial_image_index: 0, output_format: "webp" });
    const [item] = items(events);
    expect(item).toEqual({
      id: item?.["id"],
      type: "image_generation_call",
      status: "completed",
      output_format: "webp",
      result: "BBBB",
      revised_prompt: "A cat",
    });
    const { prompt } = readResponsesRequest({ model: "m", input: [item] }, "").request;
    expect(prompt.kind === "chat" && prompt.messages).toMatchObject([
      { content: [{ type: "tool-call", name: "image_generation", arguments: '{"prompt":"A cat"}' }] },
      { role: "tool", content: "The image was generated, and the user sees it. Its prompt was: A cat" },
    ]);
    const failed = stream(answer(...called(image, "{}", hostedFailure("unavailable"))));
    expect(failed.slice(4, 6).map(([name]) => name)).toEqual([
      "response.image_generation_call.generating",
      "response.output_item.done",
    ]);
    expect(failed[5]?.[1]["item"]).toMatchObject({ status: "failed", result: null });
  });

  test("the list of a server that the conversation contains is not asked for again", () => {
    const tool = { type: "mcp", server_label: "docs", server_url: "https://mcp.example/" };
    const list = { type: "mcp_list_tools", id: "mcpl_1", server_label: "docs", tools: [] };
    const read = (input: readonly unknown[]) =>
      readResponsesRequest({ model: "m", input, tools: [tool] }, "").request.hostedTools?.[0]?.options.server?.isListed;
    expect(read([{ role: "user", content: "a" }])).toBeUndefined();
    expect(read([{ role: "user", content: "a" }, list])).toBe(true);
  });

  test("an approved call has no result yet, a denied one says so, and an approval of nothing is refused", () => {
    const asked = { type: "mcp_approval_request", id: "mcpr_1", server_label: "docs", name: "read", arguments: "{}" };
    const read = (more: readonly unknown[]): readonly Message[] => {
      const { prompt } = readResponsesRequest(
        { model: "m", input: [{ role: "user", content: "a" }, asked, ...more] },
        "",
      ).request;
      return prompt.kind === "chat" ? prompt.messages : [];
    };
    const reply = (approve: boolean) => ({ type: "mcp_approval_response", approval_request_id: "mcpr_1", approve });
    expect(read([])).toHaveLength(1);
    expect(read([reply(true)]).slice(1)).toMatchObject([
      { role: "assistant", content: [{ type: "tool-call", id: "mcpr_1", name: "mcp__docs__read" }] },
    ]);
    expect(read([{ ...reply(false), reason: "Not now." }])[2]).toMatchObject({
      role: "tool",
      content: "The user has denied this call. Not now.",
    });
    const call = {
      type: "mcp_call",
      id: "mcp_1",
      approval_request_id: "mcpr_1",
      server_label: "docs",
      name: "read",
      arguments: "{}",
      output: "42",
      error: null,
    };
    expect(read([reply(true), call]).map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    expect(() => read([{ ...reply(true), approval_request_id: "mcpr_2" }])).toThrow("No approval request found");
  });
});

test("chat reports hosted calls to clients that ask for it, in a stream", () => {
  const stream = (more: object): Record<string, unknown>[] => {
    const body = { model: "m", messages: [{ role: "user", content: "a" }], stream: true, ...more };
    const { requested } = readChatRequest(body, "");
    const at = { profile: lean, created: 0, model: "m", settings: {}, random: () => 0.5 };
    const writer = new ChatStreamWriter({ ...at, id: "chatcmpl-1", requested });
    return [...writer.write(answer(...called(search, '{"query":"rain"}', found))).matchAll(/^data: (\{.*)$/gm)].map(
      ([, data = ""]) => JSON.parse(data) as Record<string, unknown>,
    );
  };
  const of = { id: "c1", kind: "web_search", tool: "web_search", name: "web_search" };
  expect(stream({ include_hosted_calls: true }).flatMap(({ hosted_call: call }) => call ?? [])).toEqual([
    { ...of, status: "running", arguments: '{"query":"rain"}' },
    {
      ...of,
      status: "completed",
      results: [{ title: "A", url: "https://a.example/" }],
      output: expect.stringContaining("It rains.") as string,
    },
  ]);
  expect(JSON.stringify(stream({}))).not.toContain("hosted_call");
});
