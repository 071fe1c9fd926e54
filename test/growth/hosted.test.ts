import { expect, test } from "vitest";
import { isInConversation } from "../../src/serve/hosted/web-fetch.ts";
import { CitationFinder } from "../../src/serve/server/hosted/citations.ts";
import { readMessageRequest } from "../../src/wire/apis/messages/request.ts";
import type { AnswerContext } from "../../src/wire/apis/port.ts";
import { ports, sourcePorts } from "../../src/wire/apis/ports.ts";
import { lean } from "../../src/wire/apis/profile.ts";
import { readResponsesRequest } from "../../src/wire/apis/responses/request.ts";
import { accumulate } from "../../src/wire/core/accumulate.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import type { HostedCallIdentity, HostedResult, HostedToolKind } from "../../src/wire/core/hosted-tool.ts";
import { runSync } from "../../src/wire/core/steps.ts";
import { growthOf, maxGrowth } from "../support/growth.ts";
import type { Shape } from "./shapes.ts";

/* The CPU time of what reads and writes calls of hosted tools grows linearly: in answers, in conversations, and in the loop. */

const times = <Made>(n: number, make: (at: number) => Made): Made[] => Array.from({ length: n }, (_, at) => make(at));

function call(at: number, kind: HostedToolKind = "web_search"): HostedCallIdentity {
  return { id: `c${at}`, kind, tool: kind === "mcp" ? "docs" : kind, name: kind === "mcp" ? "read" : kind };
}
const begun = (one: HostedCallIdentity, chunks: readonly string[] = ["{}"]): GenerationEvent[] => [
  { type: "hosted-call-start", choice: 0, ...one },
  ...chunks.map((text) => ({ type: "hosted-call-delta", choice: 0, id: one.id, arguments: text }) as const),
  { type: "hosted-call-end", choice: 0, id: one.id },
];
const ended = (one: HostedCallIdentity, result: HostedResult = search(1)): GenerationEvent => ({
  type: "hosted-result",
  choice: 0,
  ...one,
  result,
});
const search = (n: number): HostedResult => ({
  kind: "search",
  results: times(n, (at) => ({ url: `https://a.example/${at}`, title: "A", text: "It rains." })),
});
const contents = (n: number): HostedResult => ({
  kind: "contents",
  contents: times(n, () => ({ type: "text", text: "x" })),
  isError: false,
});

const answers: Readonly<Record<string, Shape<GenerationEvent[]>>> = {
  "calls one after the other": (n) => times(n, (at) => [...begun(call(at)), ended(call(at))]).flat(),
  "parallel calls": (n) => [...times(n, (at) => begun(call(at))).flat(), ...times(n, (at) => ended(call(at)))],
  "calls without results": (n) => times(n, (at) => begun(call(at))).flat(),
  "results without calls": (n) => times(n, (at) => ended(call(at))),
  "arguments in small chunks": (n) => [
    ...begun(call(0, "mcp"), ['{"a":"', ...times(n, () => "x"), '"}']),
    ended(call(0, "mcp"), contents(1)),
  ],
  "results of a search": (n) => [...begun(call(0)), ended(call(0), search(n))],
  "contents of a result": (n) => [...begun(call(0, "mcp")), ended(call(0, "mcp"), contents(n))],
  "output of code": (n) => [
    ...begun(call(0, "code_interpreter"), [JSON.stringify({ code: "x\n".repeat(n) })]),
    ended(call(0, "code_interpreter"), { kind: "code", stdout: '"\n'.repeat(n), stderr: "", returnCode: 0 }),
  ],
  "states of an image": (n) => [
    ...begun(call(0, "image_generation")),
    ended(call(0, "image_generation"), {
      kind: "image",
      url: `data:image/png;base64,${"A".repeat(n)}`,
      partial: times(n, () => "data:image/png;base64,AAAA"),
    }),
  ],
  "functions of an MCP server": (n) => [
    { type: "hosted-functions", choice: 0, id: "l", tool: "docs", functions: times(n, (at) => ({ name: `f${at}` })) },
  ],
  "text while a call runs": (n) => [
    ...begun(call(0)),
    ...times(n, () => ({ type: "text-delta", choice: 0, text: "x" }) as const),
    ended(call(0)),
  ],
};

function measure<Made>(shapes: Readonly<Record<string, Shape<Made>>>, use: (made: Made) => unknown): void {
  const ratios = Object.entries(shapes).map(([name, shape]) => {
    const growth = growthOf((size) => {
      const made = shape(size);
      return () => use(made);
    });
    return [name, growth] as const;
  });
  expect(ratios.filter(([, ratio]) => ratio > maxGrowth)).toEqual([]);
}

const context: AnswerContext = { profile: lean, created: 1_786_000_000, model: "m", settings: {}, random: () => 0.5 };
const requests: Readonly<Record<string, object>> = {
  chat: { messages: [{ role: "user", content: "Hi" }], include_hosted_calls: true },
  responses: { input: "Hi", include: ["web_search_call.action.sources", "code_interpreter_call.outputs"] },
  messages: { messages: [{ role: "user", content: "Hi" }], max_tokens: 100 },
};
const names = Object.keys(requests) as ("chat" | "responses" | "messages")[];

const whole = (events: readonly GenerationEvent[]): GenerationEvent[] => [
  { type: "start", choice: 0 },
  ...events,
  { type: "finish", choice: 0, reason: "stop" },
  { type: "usage", usage: { promptTokens: 1, completionTokens: 1 } },
  { type: "end", end: { kind: "done" } },
];

test.each(names)("writers, and readers of what they write: %s", (name) => {
  const port = ports.find((one) => one.name === name);
  if (!port) throw new Error(`no port ${name}`);
  const read = runSync(port.readRequest({ model: "m", stream: true, ...requests[name] }, "req_1", { profile: lean }));
  measure(answers, (events) => {
    const writer = read.streamWriter(context);
    const reader = sourcePorts[name].reader({ newCallId: () => "call_new" });
    for (const event of whole(events)) {
      const text = writer.write([event]);
      for (let at = 0; at < text.length; at += 4096) reader.push(text.slice(at, at + 4096));
    }
    reader.end();
    read.writeResponse(accumulate(whole(events)), context);
  });
});

test("items of Responses in a conversation", () => {
  const items: Readonly<Record<string, (at: number) => object[]>> = {
    searches: (at) => [
      {
        type: "web_search_call",
        id: `ws_${at}`,
        status: "completed",
        action: { type: "search", query: "q", sources: [{ type: "url", url: "https://a.example/" }] },
      },
    ],
    "searches without results": (at) => [{ type: "web_search_call", id: `ws_${at}`, status: "completed", action: {} }],
    "calls of an MCP server": (at) => [
      { type: "mcp_call", id: `mcp_${at}`, server_label: "docs", name: "f", arguments: "{}", output: "x", error: null },
    ],
    "lists of functions": (at) => [{ type: "mcp_list_tools", id: `l_${at}`, server_label: `docs${at}`, tools: [] }],
    "requests for approval": (at) => [
      { type: "mcp_approval_request", id: `r_${at}`, server_label: "docs", name: "f", arguments: "{}" },
      { type: "mcp_approval_response", approval_request_id: `r_${at}`, approve: at % 2 === 0 },
    ],
    images: (at) => [{ type: "image_generation_call", id: `ig_${at}`, status: "completed", result: "AAAA" }],
  };
  const shapes = Object.fromEntries(
    Object.entries(items).map(([name, make]) => [name, (n: number) => times(n, make).flat()]),
  );
  measure(shapes, (input) =>
    readResponsesRequest({ model: "m", input: [{ role: "user", content: "Hi" }, ...input] }, ""),
  );
});

/** A message has at most 5,000 blocks. */
function messagesOf(content: readonly object[]): object[] {
  const messages: object[] = [{ role: "user", content: "Hi" }];
  for (let at = 0; at < content.length; at += 4000)
    messages.push({ role: "assistant", content: content.slice(at, at + 4000) });
  return [...messages, { role: "user", content: "And?" }];
}

test("blocks of Messages in a conversation", () => {
  const use = (at: number): object => ({ type: "server_tool_use", id: `s${at}`, name: "web_search", input: {} });
  const result = (at: number): object => ({ type: "web_search_tool_result", tool_use_id: `s${at}`, content: [] });
  const listing = (at: number): object => ({
    type: "mcp_tool_listing",
    mcp_server_name: `docs${at}`,
    tools: [{ name: "f", input_schema: { type: "object" } }],
  });
  const shapes: Readonly<Record<string, Shape<object[]>>> = {
    "calls and results in turns": (n) => times(n, (at) => [use(at), result(at)]).flat(),
    "calls, then their results": (n) => [...times(n, use), ...times(n, result)],
    "calls without results": (n) => times(n, use),
    "results without calls": (n) => times(n, result),
    "lists of functions": (n) => times(n, listing),
    "results of a search": (n) => [
      use(0),
      {
        ...result(0),
        content: times(n, () => ({
          type: "web_search_result",
          title: "A",
          url: "https://a.example/",
          encrypted_content: "sealed",
        })),
      },
    ],
  };
  measure(shapes, (content) =>
    readMessageRequest(
      {
        model: "m",
        max_tokens: 10,
        messages: messagesOf(content),
      },
      "",
    ),
  );
});

test("citations in a text, and an address in a conversation", () => {
  const texts: Readonly<Record<string, Shape<string>>> = {
    "one long text": (n) => "x".repeat(n),
    "addresses of results": (n) => "[a](https://a.example/) ".repeat(n),
    "an address without end": (n) => `https://a.example/${"x".repeat(n)}`,
    beginnings: (n) => "https://".repeat(n),
    brackets: (n) => "[](".repeat(n),
    "full stops after an address": (n) => `https://a.example/${".".repeat(n)} `,
  };
  measure(texts, (text) => {
    const finder = new CitationFinder();
    finder.add([{ url: "https://a.example/", title: "A", text: "" }]);
    for (let at = 0; at < text.length; at += 61) finder.read(text.slice(at, at + 61));
    finder.endPart();
    isInConversation("https://a.example/", [{ role: "user", content: text }]);
  });
});
