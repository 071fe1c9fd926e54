import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/app/create-server.ts";
import type { TruewireServer } from "../../src/app/create-server.ts";
import type { ProgramEvent } from "../../src/engines/program/program.ts";
import type { GenerationEvent } from "../../src/generation/event.ts";
import { responseEvents } from "../support/response-stream.ts";
import { ScriptedEngine } from "../support/scripted-engine.ts";
import { done as chatDone, event as chatEvent } from "../upstream/scripted-server.ts";
import { startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";
import { askMessage } from "./support.ts";
import type { Json } from "./support.ts";

/*
 * Whatever a client speaks and whatever answers, the same is said: clients of chat, legacy completions, Responses and Messages before an
 * engine, a program, and servers of each of these APIs. Each pair with a text, a thought, two calls, an answer that is cut, and an error.
 *
 * Completions have no place for thoughts and calls, so their clients get the text alone. A conversation is not to be had from a server
 * that only continues texts, nor the continuation of a text from one that only has conversations: both are refused with a status.
 */

/** What a source is to say: asked for by the user's message. */
type Scenario = "text" | "thought" | "calls" | "cut" | "error";

const engineEvents: Readonly<Record<Scenario, readonly GenerationEvent[]>> = {
  text: [delta("Hello "), delta("there."), finish("stop")],
  thought: [{ type: "reasoning-delta", choice: 0, text: "Hm." }, delta("Yes."), finish("stop")],
  calls: [delta("I look."), ...call(0, "look", '{"at":1}'), ...call(1, "wait", "{}"), finish("tool-calls")],
  cut: [delta("Once upon a"), finish("length")],
  error: [delta("Once"), ...call(0, "look", '{"at":1}')],
};

function delta(text: string): GenerationEvent {
  return { type: "text-delta", choice: 0, text };
}

function finish(reason: "stop" | "length" | "tool-calls"): GenerationEvent {
  return { type: "finish", choice: 0, reason };
}

function call(index: number, name: string, json: string): GenerationEvent[] {
  return [
    { type: "tool-call-start", choice: 0, index, id: `call_${index}`, name },
    { type: "tool-call-delta", choice: 0, index, arguments: json },
    { type: "tool-call-end", choice: 0, index, status: "succeeded" },
  ];
}

function engine(): ScriptedEngine {
  return new ScriptedEngine(function* ({ prompt }) {
    const scenario = asked(prompt.kind === "chat" ? prompt.messages.at(-1)?.content : prompt.prompts[0]);
    yield [{ type: "start", choice: 0 }];
    for (const event of engineEvents[scenario]) yield [event];
    const failure = { kind: "unavailable", message: "The engine broke.", status: 503 } as const;
    if (scenario === "error") yield [{ type: "end", end: { kind: "engine-error", failure } }];
    else
      yield [
        { type: "usage", usage: { promptTokens: 9, completionTokens: 4 } },
        { type: "end", end: { kind: "done" } },
      ];
  }, "m");
}

async function* program({
  messages,
}: {
  messages: readonly { content?: unknown }[];
}): AsyncGenerator<string | ProgramEvent> {
  const scenario = asked(messages.at(-1)?.content);
  for (const event of engineEvents[scenario]) {
    if (event.type === "text-delta") yield event.text;
    else if (event.type === "reasoning-delta") yield { type: "reasoning", text: event.text };
    else if (event.type === "tool-call-start") yield { type: "tool-call-start", name: event.name };
    else if (event.type === "tool-call-delta") yield { type: "tool-call-delta", arguments: event.arguments };
    else if (event.type === "tool-call-end") yield { type: "tool-call-end" };
    else if (event.type === "finish") yield { type: "finish", reason: event.reason };
  }
  if (scenario === "error") throw new Error("The program broke.");
  yield { type: "usage", usage: { promptTokens: 9, completionTokens: 4 } };
}

function asked(content: unknown): Scenario {
  const text = typeof content === "string" ? content : JSON.stringify(content);
  return (Object.keys(engineEvents) as Scenario[]).find((name) => text.includes(name)) ?? "text";
}

const chatUsage = `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 } })}\n\n`;

function chatCall(index: number, name: string, json: string): string {
  const head = { index, id: `call_${index}`, type: "function", function: { name, arguments: "" } };
  return chatEvent({ tool_calls: [head] }) + chatEvent({ tool_calls: [{ index, function: { arguments: json } }] });
}

const chatStreams: Readonly<Record<Scenario, string>> = {
  text: chatEvent({ content: "Hello " }) + chatEvent({ content: "there." }) + chatEvent({}, "stop"),
  thought: chatEvent({ reasoning_content: "Hm." }) + chatEvent({ content: "Yes." }) + chatEvent({}, "stop"),
  calls:
    chatEvent({ content: "I look." }) +
    chatCall(0, "look", '{"at":1}') +
    chatCall(1, "wait", "{}") +
    chatEvent({}, "tool_calls"),
  cut: chatEvent({ content: "Once upon a" }) + chatEvent({}, "length"),
  error: chatEvent({ content: "Once" }) + chatCall(0, "look", '{"at":1}'),
};

function textEvent(text: string, finish_reason: string | null = null): string {
  const choices = [{ text, index: 0, logprobs: null, finish_reason }];
  return `data: ${JSON.stringify({ id: "cmpl-1", object: "text_completion", created: 1, model: "m", choices })}\n\n`;
}

const textUsage = chatUsage.replace("chat.completion.chunk", "text_completion");

const textStreams: Readonly<Record<Scenario, string>> = {
  text: textEvent("Hello ") + textEvent("there.") + textEvent("", "stop"),
  thought: textEvent("Yes.") + textEvent("", "stop"),
  calls: textEvent("I look.") + textEvent("", "stop"),
  cut: textEvent("Once upon a") + textEvent("", "length"),
  error: textEvent("Once"),
};

const brokenChat = 'data: {"error":{"message":"The server broke.","type":"server_error"}}\n\n';

function continueText(response: ServerResponse, body: Json): void {
  const scenario = asked(body["prompt"]);
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(textStreams[scenario] + (scenario === "error" ? brokenChat : textUsage + chatDone));
}

const noChatModel =
  "This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?";
const onlyChatModel =
  "This is a chat model and not supported in the v1/completions endpoint. Did you mean to use v1/chat/completions?";

/** A server of a base model: it continues texts, and has no conversations. */
function completionsUpstream(): Promise<ScriptedServer> {
  return startScripted((response, body) => {
    if ("prompt" in body) return continueText(response, body);
    response.writeHead(404, { "content-type": "application/json" });
    const error = { message: noChatModel, type: "invalid_request_error", param: "model", code: null };
    response.end(JSON.stringify({ error }));
  });
}

/** A body as its stream: what these upstreams answer does not depend on how they are asked, which readers take, too. */
function chatUpstream(): Promise<ScriptedServer> {
  return startScripted((response, body) => {
    if ("prompt" in body) return continueText(response, body);
    const scenario = asked((body["messages"] as Json[]).at(-1)?.["content"]);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(chatEvent({ role: "assistant", content: "" }) + chatStreams[scenario]);
    if (scenario === "error") response.end(brokenChat);
    else response.end(chatUsage + chatDone);
  });
}

function messageEvents(...events: readonly Json[]): string {
  return events.map((event) => `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

function block(index: number, content_block: Json, ...deltas: Json[]): Json[] {
  return [
    { type: "content_block_start", index, content_block },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

function textBlock(index: number, ...pieces: string[]): Json[] {
  return block(index, { type: "text", text: "" }, ...pieces.map((text) => ({ type: "text_delta", text })));
}

function callBlock(index: number, name: string, json: string): Json[] {
  const start = { type: "tool_use", id: `toolu_${index}`, name, input: {} };
  return block(index, start, { type: "input_json_delta", partial_json: json });
}

function messageEnd(stop_reason: string): Json[] {
  return [
    { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 4 } },
    { type: "message_stop" },
  ];
}

const messageStreams: Readonly<Record<Scenario, readonly Json[]>> = {
  text: [...textBlock(0, "Hello ", "there."), ...messageEnd("end_turn")],
  thought: [
    ...block(
      0,
      { type: "thinking", thinking: "", signature: "" },
      { type: "thinking_delta", thinking: "Hm." },
      { type: "signature_delta", signature: "sig" },
    ),
    ...textBlock(1, "Yes."),
    ...messageEnd("end_turn"),
  ],
  calls: [
    ...textBlock(0, "I look."),
    ...callBlock(1, "look", '{"at":1}'),
    ...callBlock(2, "wait", ""),
    ...messageEnd("tool_use"),
  ],
  cut: [...textBlock(0, "Once upon a"), ...messageEnd("max_tokens")],
  error: [
    ...textBlock(0, "Once"),
    ...callBlock(1, "look", '{"at":1}'),
    { type: "error", error: { type: "overloaded_error", message: "The server broke." } },
  ],
};

function messagesUpstream(): Promise<ScriptedServer> {
  return startScripted((response, body) => {
    const scenario = asked((body["messages"] as Json[]).at(-1)?.["content"]);
    const usage = { input_tokens: 9, output_tokens: 1 };
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(
      messageEvents(
        { type: "message_start", message: { id: "msg_1", model: "m", usage } },
        ...messageStreams[scenario],
      ),
    );
  });
}

const responseItems: Readonly<Record<Scenario, readonly Json[]>> = {
  text: [message("Hello ", "there.")],
  thought: [thought("Hm."), message("Yes.")],
  calls: [message("I look."), callItem(0, "look", '{"at":1}'), callItem(1, "wait", "{}")],
  cut: [message("Once upon a")],
  error: [message("Once"), callItem(0, "look", '{"at":1}')],
};

function message(...pieces: string[]): Json {
  return { type: "message", role: "assistant", pieces, content: [{ type: "output_text", text: pieces.join("") }] };
}

function thought(text: string): Json {
  return { type: "reasoning", summary: [], pieces: [text], content: [{ type: "reasoning_text", text }] };
}

function callItem(index: number, name: string, json: string): Json {
  return { type: "function_call", call_id: `call_${index}`, name, arguments: json, pieces: [json] };
}

const deltas: Readonly<Record<string, string>> = {
  message: "response.output_text.delta",
  reasoning: "response.reasoning_text.delta",
  function_call: "response.function_call_arguments.delta",
};

function responsesUpstream(): Promise<ScriptedServer> {
  return startScripted((response, body) => {
    const scenario = asked((body["input"] as Json[]).at(-1)?.["content"]);
    const items = responseItems[scenario].map((item, index): Json => ({ id: `item_${index}`, ...item }));
    const status = scenario === "cut" ? "incomplete" : "completed";
    const usage = { input_tokens: 9, output_tokens: 4, total_tokens: 13 };
    const details = scenario === "cut" ? { reason: "max_output_tokens" } : null;
    const whole = { id: "resp_1", object: "response", model: "m", status, incomplete_details: details, usage };
    const events: Json[] = [{ type: "response.created", response: { ...whole, status: "in_progress", output: [] } }];
    for (const [output_index, { pieces, ...item }] of items.entries()) {
      events.push({ type: "response.output_item.added", output_index, item: { ...item, content: [], arguments: "" } });
      const type = deltas[String(item["type"])] ?? "";
      for (const delta of pieces as string[]) events.push({ type, item_id: item["id"], output_index, delta });
      // The call that the server breaks at is whole already: nobody may run it.
      events.push({ type: "response.output_item.done", output_index, item });
    }
    const error = { code: "server_error", message: "The server broke." };
    if (scenario === "error") events.push({ type: "response.failed", response: { ...whole, status: "failed", error } });
    else events.push({ type: `response.${status}`, response: { ...whole, output: [] } });
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(messageEvents(...events.map((event, sequence_number) => ({ ...event, sequence_number }))));
  });
}

/** What an answer says, whatever API told it. */
interface Said {
  readonly text: string;
  readonly thought: string;
  readonly calls: readonly (readonly [name: string, input: unknown])[];
  readonly end: "stop" | "length" | "calls" | null;
  readonly tokens: readonly [input: unknown, output: unknown] | null;
  /** The status before anything was told, or that an error came behind it. */
  readonly failed: false | "status" | "stream";
  /** What a 404 says. */
  readonly refusal: string | null;
  /** Calls that a client would run. */
  readonly runs: readonly string[];
}

const expected: Readonly<Record<Scenario, Said>> = {
  text: { ...nothing(), text: "Hello there.", end: "stop" },
  thought: { ...nothing(), thought: "Hm.", text: "Yes.", end: "stop" },
  calls: {
    ...nothing(),
    text: "I look.",
    calls: [
      ["look", { at: 1 }],
      ["wait", {}],
    ],
    end: "calls",
    runs: ["look", "wait"],
  },
  cut: { ...nothing(), text: "Once upon a", end: "length" },
  error: { ...nothing(), tokens: null },
};

function nothing(): Said {
  return { text: "", thought: "", calls: [], end: null, tokens: [9, 4], failed: false, refusal: null, runs: [] };
}

/** What a client has of an answer that is none. */
function refused(status: number, body: string): Said {
  const { error } = JSON.parse(body) as { error: Json };
  expect(error["message"]).toBeTypeOf("string");
  return { ...nothing(), tokens: null, failed: "status", refusal: status === 404 ? String(error["message"]) : null };
}

const tools = ["look", "wait"].map((name) => ({ name, input_schema: { type: "object" } }));

async function byMessages(server: TruewireServer, model: string, scenario: Scenario, stream: boolean): Promise<Said> {
  const messages = [{ role: "user", content: scenario }];
  const answer = await askMessage(server, { model, messages, stream, tools });
  const { message, error, closedCalls, status } = answer;
  if (status !== 200 || error) {
    const refusal = status === 404 ? refused(status, JSON.stringify(message)) : nothing();
    const { type, request_id, error: told } = (error ?? message) as Json & { error: Json };
    expect({ type, request_id }).toMatchObject({ type: "error", request_id: expect.stringMatching(/^req_/) as string });
    expect(told["message"]).toBeTypeOf("string");
    return { ...refusal, tokens: null, failed: error ? "stream" : "status", runs: closedCalls };
  }
  const blocks = message.content ?? [];
  const usage = message["usage"] as Json;
  const calls = blocks.filter(({ type }) => type === "tool_use");
  for (const call of calls) expect(call["id"]).toMatch(/^[a-zA-Z0-9_-]+$/);
  return {
    text: blocks.map(({ text }) => text ?? "").join(""),
    thought: blocks.map(({ thinking }) => thinking ?? "").join(""),
    calls: calls.map(({ name, input }) => [String(name), input] as const),
    end:
      ({ end_turn: "stop", max_tokens: "length", tool_use: "calls" } as const)[String(message["stop_reason"])] ?? null,
    tokens: [usage["input_tokens"], usage["output_tokens"]],
    failed: false,
    refusal: null,
    runs: stream ? closedCalls : calls.map(({ name }) => String(name)),
  };
}

async function byChat(server: TruewireServer, model: string, scenario: Scenario, stream: boolean): Promise<Said> {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model,
      messages: [{ role: "user", content: scenario }],
      stream,
      tools: tools.map(({ name, input_schema }) => ({
        type: "function",
        function: { name, parameters: input_schema },
      })),
      ...(stream && { stream_options: { include_usage: true } }),
    }),
  });
  const text = await response.text();
  if (response.status !== 200) return refused(response.status, text);
  const chunks = stream ? chunksOf(text) : [JSON.parse(text) as Json];
  if (chunks.some((chunk) => chunk["error"])) return { ...nothing(), tokens: null, failed: "stream" };
  const said = { text: "", thought: "", end: null as Said["end"] };
  const calls: { name: string; json: string }[] = [];
  let usage: Json = {};
  for (const chunk of chunks) {
    usage = (chunk["usage"] as Json | null) ?? usage;
    const [choice] = chunk["choices"] as { delta?: Json; message?: Json; finish_reason: string | null }[];
    const { content, reasoning_content, tool_calls } = choice?.delta ?? choice?.message ?? {};
    said.text += (content as string | null | undefined) ?? "";
    said.thought += (reasoning_content as string | undefined) ?? "";
    for (const [at, call] of (
      (tool_calls ?? []) as { index?: number; function: { name?: string; arguments: string } }[]
    ).entries()) {
      const entry = (calls[call.index ?? at] ??= { name: "", json: "" });
      entry.name += call.function.name ?? "";
      entry.json += call.function.arguments;
    }
    const reasons = { stop: "stop", length: "length", tool_calls: "calls" } as const;
    said.end = reasons[choice?.finish_reason as keyof typeof reasons] ?? said.end;
  }
  return {
    ...nothing(),
    ...said,
    calls: calls.map(({ name, json }) => [name, JSON.parse(json)] as const),
    tokens: [usage["prompt_tokens"], usage["completion_tokens"]],
    runs: calls.map(({ name }) => name),
  };
}

async function byCompletions(
  server: TruewireServer,
  model: string,
  scenario: Scenario,
  stream: boolean,
): Promise<Said> {
  const response = await fetch(`${server.url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model,
      prompt: scenario,
      stream,
      ...(stream && { stream_options: { include_usage: true } }),
    }),
  });
  const text = await response.text();
  if (response.status !== 200) return refused(response.status, text);
  const chunks = stream ? chunksOf(text) : [JSON.parse(text) as Json];
  if (chunks.some((chunk) => chunk["error"])) return { ...nothing(), tokens: null, failed: "stream" };
  const choices = chunks.flatMap((chunk) => chunk["choices"] as { text: string; finish_reason: "stop" | "length" }[]);
  const usage = chunks.at(-1)?.["usage"] as Json;
  return {
    ...nothing(),
    text: choices.map((choice) => choice.text).join(""),
    end: choices.at(-1)?.finish_reason ?? null,
    tokens: [usage["prompt_tokens"], usage["completion_tokens"]],
  };
}

function chunksOf(stream: string): Json[] {
  return stream
    .split("\n\n")
    .flatMap((frame) => (frame.startsWith("data: {") ? [JSON.parse(frame.slice(6)) as Json] : []));
}

async function byResponses(server: TruewireServer, model: string, scenario: Scenario, stream: boolean): Promise<Said> {
  const response = await fetch(`${server.url}/v1/responses`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model,
      input: [{ role: "user", content: scenario }],
      stream,
      tools: tools.map(({ name, input_schema }) => ({
        type: "function",
        name,
        parameters: input_schema,
        strict: false,
      })),
    }),
  });
  const text = await response.text();
  if (response.status !== 200) return refused(response.status, text);
  const events: readonly (Json & { type: unknown })[] = stream
    ? responseEvents(text)
    : [{ type: "response.completed", response: JSON.parse(text) as Json }];
  const runs = events
    .filter(({ type }) => type === "response.output_item.done")
    .map(({ item }) => item as Json)
    .filter(({ type }) => type === "function_call");
  const last = events.at(-1);
  if (last?.type === "response.failed")
    return { ...nothing(), tokens: null, failed: "stream", runs: runs.map(({ name }) => String(name)) };
  if (!last) throw new Error("the stream has no last event");
  const { output, usage, status } = last["response"] as { output: Json[]; usage: Json; status: string };
  const of = (type: string): Json[] => output.filter((item) => item["type"] === type);
  const said = (type: string): string =>
    of(type)
      .flatMap(({ content }) => content as { text: string }[])
      .map((part) => part.text)
      .join("");
  const calls = of("function_call");
  return {
    text: said("message"),
    thought: said("reasoning"),
    calls: calls.map(({ name, arguments: json }) => [String(name), JSON.parse(String(json))] as const),
    end: status === "incomplete" ? "length" : calls.length > 0 ? "calls" : "stop",
    tokens: [usage["input_tokens"], usage["output_tokens"]],
    failed: false,
    refusal: null,
    runs: (stream ? runs : calls).map(({ name }) => String(name)),
  };
}

const sources = [
  "engine",
  "program",
  "chat upstream",
  "completions upstream",
  "responses upstream",
  "messages upstream",
] as const;
const clients = { chat: byChat, completions: byCompletions, responses: byResponses, messages: byMessages } as const;

/** What each client is told of each source; an error comes before anything is told, or behind some of it. */
function expectedOf(
  client: keyof typeof clients,
  source: (typeof sources)[number],
  scenario: Scenario,
  how: "stream" | "whole",
): Said {
  const isText = client === "completions";
  const refusal =
    !isText && source === "completions upstream"
      ? noChatModel
      : isText && (source === "responses upstream" || source === "messages upstream")
        ? onlyChatModel
        : null;
  if (refusal !== null) return { ...nothing(), tokens: null, failed: "status", refusal };
  const said = expected[scenario];
  if (scenario === "error") return { ...said, failed: how === "stream" ? "stream" : "status" };
  if (!isText) return said;
  return { ...nothing(), text: said.text, end: said.end === "length" ? "length" : "stop" };
}

let server: TruewireServer;
const upstreams: ScriptedServer[] = [];

beforeAll(async () => {
  const [chat, completions] = [await chatUpstream(), await completionsUpstream()];
  const [responses, messages] = [await responsesUpstream(), await messagesUpstream()];
  upstreams.push(chat, completions, responses, messages);
  server = await createServer({
    port: 0,
    logLevel: "silent",
    models: [
      { kind: "engine", engine: engine(), aliases: ["engine"] },
      { kind: "program", program, name: "program" },
      { kind: "upstream", url: chat.url, models: { "chat upstream": "m" }, name: "chat" },
      { kind: "upstream", url: completions.url, models: { "completions upstream": "m" }, name: "completions" },
      {
        kind: "upstream",
        url: responses.url,
        api: "responses",
        models: { "responses upstream": "m" },
        name: "responses",
      },
      { kind: "upstream", url: messages.url, api: "messages", models: { "messages upstream": "m" }, name: "messages" },
    ],
  });
});

afterAll(async () => {
  await server.close();
  for (const upstream of upstreams) await upstream.close();
});

describe.each(Object.keys(clients) as (keyof typeof clients)[])("a client of %s", (client) => {
  describe.each(sources)("before a source of kind %s", (source) => {
    test.each(Object.keys(expected) as Scenario[])("%s", async (scenario) => {
      const streamed = await clients[client](server, source, scenario, true);
      const whole = await clients[client](server, source, scenario, false);
      expect(streamed).toEqual(expectedOf(client, source, scenario, "stream"));
      expect(whole).toEqual(expectedOf(client, source, scenario, "whole"));
    });
  });
});

test("a text that nobody can continue is refused with OpenAI's error, which says what to ask instead", async () => {
  const response = await fetch(`${server.url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "messages upstream", prompt: "Once upon a" }),
  });
  expect(response.status).toBe(404);
  const error = { message: onlyChatModel, type: "invalid_request_error", param: "model", code: null };
  expect(await response.json()).toEqual({ error });
});
