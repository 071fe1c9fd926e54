import type { ServerResponse } from "node:http";
import type { ProgramEvent } from "../../src/wire/apis/chat/program.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { done as chatDone, event as chatEvent } from "../upstream/scripted-server.ts";
import { startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";
import { asked } from "./scenarios.ts";
import type { Scenario } from "./scenarios.ts";
import type { Json } from "./support.ts";

// Sources that say what a scenario is about: a program, a local model's scripts, and a server of each API.

const programEvents: Readonly<Record<Scenario, readonly GenerationEvent[]>> = {
  text: [delta("Hello "), delta("there."), finish("stop")],
  reasoning: [{ type: "reasoning-delta", choice: 0, text: "Hm." }, delta("Yes."), finish("stop")],
  calls: [delta("I look."), ...call(0, "look", '{"at":1}'), ...call(1, "wait", "{}"), finish("tool-calls")],
  cut: [delta("Once upon a"), finish("length")],
  error: [delta("Once"), ...call(0, "look", '{"at":1}')],
};

/** What the local model writes; a prompt names the script. The limit cuts "cut" after its third token. */
export const scripts = {
  greeting: { say: "Which script?" },
  text: { say: "Hello there." },
  "tool-answer": { say: "Hello there." },
  reasoning: { say: "<think>\nHm.\n</think>\n\nYes." },
  calls: {
    say: 'I look.<tool_call>\n{"name": "look", "arguments": {"at":1}}\n</tool_call>\n<tool_call>\n{"name": "wait", "arguments": {}}\n</tool_call>',
  },
  cut: { say: ["Once", " upon", " a", " time"] },
} as const;
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

export async function* program({
  messages,
}: {
  messages: readonly { content?: unknown }[];
}): AsyncGenerator<string | ProgramEvent> {
  const scenario = asked(messages.at(-1)?.content);
  for (const event of programEvents[scenario]) {
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
const chatUsage = `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 } })}\n\n`;

function chatCall(index: number, name: string, json: string): string {
  const head = { index, id: `call_${index}`, type: "function", function: { name, arguments: "" } };
  return chatEvent({ tool_calls: [head] }) + chatEvent({ tool_calls: [{ index, function: { arguments: json } }] });
}

const chatStreams: Readonly<Record<Scenario, string>> = {
  text: chatEvent({ content: "Hello " }) + chatEvent({ content: "there." }) + chatEvent({}, "stop"),
  reasoning: chatEvent({ reasoning_content: "Hm." }) + chatEvent({ content: "Yes." }) + chatEvent({}, "stop"),
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
  reasoning: textEvent("Yes.") + textEvent("", "stop"),
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

export const noChatModel =
  "This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?";
export const onlyChatModel =
  "This is a chat model and not supported in the v1/completions endpoint. Did you mean to use v1/chat/completions?";

/** A server of a base model: it continues texts, and has no conversations. */
export function completionsUpstream(): Promise<ScriptedServer> {
  return startScripted((response, body) => {
    if ("prompt" in body) return continueText(response, body);
    response.writeHead(404, { "content-type": "application/json" });
    const error = { message: noChatModel, type: "invalid_request_error", param: "model", code: null };
    response.end(JSON.stringify({ error }));
  });
}

/** A body as its stream: what these upstreams answer does not depend on how they are asked, which readers take, too. */
export function chatUpstream(): Promise<ScriptedServer> {
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
  reasoning: [
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

export function messagesUpstream(): Promise<ScriptedServer> {
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
  reasoning: [reasoning("Hm."), message("Yes.")],
  calls: [message("I look."), callItem(0, "look", '{"at":1}'), callItem(1, "wait", "{}")],
  cut: [message("Once upon a")],
  error: [message("Once"), callItem(0, "look", '{"at":1}')],
};

function message(...pieces: string[]): Json {
  return { type: "message", role: "assistant", pieces, content: [{ type: "output_text", text: pieces.join("") }] };
}

function reasoning(text: string): Json {
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

export function responsesUpstream(): Promise<ScriptedServer> {
  return startScripted((response, body) => {
    const input = body["input"] as string | Json[];
    const scenario = asked(typeof input === "string" ? input : input.at(-1)?.["content"]);
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
      // The server breaks after the call is complete: no client may run it.
      events.push({ type: "response.output_item.done", output_index, item });
    }
    const error = { code: "server_error", message: "The server broke." };
    if (scenario === "error") events.push({ type: "response.failed", response: { ...whole, status: "failed", error } });
    else events.push({ type: `response.${status}`, response: { ...whole, output: [] } });
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(messageEvents(...events.map((event, sequence_number) => ({ ...event, sequence_number }))));
  });
}
