import type { GenerationEvent, TokenLogprob } from "../../src/wire/core/events.ts";

/*
 * Hostile shapes of answers, by name. Each makes an answer of about `n` events, characters or members: what a source may send that nobody
 * has bounded, and what a reader or writer may be tempted to read again with each event.
 */

export type Shape<Made> = (n: number) => Made;

const times = <Made>(n: number, make: (at: number) => Made): Made[] => Array.from({ length: n }, (_, at) => make(at));
const text = (words: string): GenerationEvent => ({ type: "text-delta", choice: 0, text: words });
const reasoning = (words: string): GenerationEvent => ({ type: "reasoning-delta", choice: 0, text: words });
const token = (words: string): TokenLogprob => ({ token: words, logprob: -1, bytes: null, top: [] });

function call(index: number, fragments: readonly string[]): GenerationEvent[] {
  return [
    { type: "tool-call-start", choice: 0, index, id: `call_${index}`, name: "f" },
    ...fragments.map((fragment) => ({ type: "tool-call-delta", choice: 0, index, arguments: fragment }) as const),
    { type: "tool-call-end", choice: 0, index, status: "succeeded" },
  ];
}

/** Events between the start and the end of an answer. */
const middles: Readonly<Record<string, Shape<GenerationEvent[]>>> = {
  "one long text": (n) => [text("x".repeat(n))],
  "many short texts": (n) => times(n, () => text("x")),
  "white space": (n) => times(n, () => text(" ")),
  "line feeds in one text": (n) => [text("\n\n".repeat(n))],
  "tokens without text": (n) => times(n, () => ({ type: "text-delta", choice: 0, text: "", logprobs: [token("x")] })),
  "tokens with log probabilities": (n) =>
    times(n, () => ({ type: "text-delta", choice: 0, text: "x", logprobs: [token("x")] })),
  "reasoning and text in turns": (n) => times(n, (at) => (at % 2 === 0 ? reasoning("x") : text("x"))),
  "reasoning and text with log probabilities in turns": (n) =>
    times(n, (at) =>
      at % 2 === 0 ? reasoning("x") : { type: "text-delta", choice: 0, text: "x", logprobs: [token("x")] },
    ),
  "parts of a summary": (n) => times(n, (at) => ({ type: "reasoning-delta", choice: 0, text: "x", summary: at })),
  "parts without content": (n) =>
    times(n, (at) => ({ type: at % 2 === 0 ? "part-start" : "part-end", choice: 0, kind: "text" }) as GenerationEvent),
  refusals: (n) => times(n, () => ({ type: "refusal-delta", choice: 0, text: "x" })),
  "white space in the arguments of a call": (n) =>
    call(
      0,
      times(n, () => " "),
    ),
  "white space after a brace in the arguments": (n) => call(0, ["{", ...times(n, () => " ")]),
  "quotes in the arguments of a call": (n) => call(0, ['{"a":"', ...times(n, () => '\\"'), '"}']),
  "nested arguments": (n) => call(0, [...times(n, () => '{"a":'), "1", ...times(n, () => "}")]),
  "many calls": (n) => times(n, (at) => call(at, ["{}"])).flat(),
  "texts after a call": (n) => [...call(0, ["{}"]), ...times(n, () => text("x"))],
  annotations: (n) =>
    times(n, (at) => ({ type: "annotation", choice: 0, annotation: { url: `https://example.com/${at}` } })),
  "usage with each event": (n) =>
    times(n, (at) => (at % 2 === 0 ? text("x") : { type: "usage", usage: { promptTokens: 1, completionTokens: at } })),
  "foreign members": (n) => times(n, (at) => ({ type: "extra", place: "chunk", value: { [`x_${at}`]: at } })),
  "foreign members of a choice": (n) =>
    times(n, (at) => ({ type: "extra", choice: 0, place: "choice", value: { [`x_${at}`]: at } })),
  "ids of tokens": (n) => times(n, (at) => ({ type: "tokens", choice: 0, tokens: [at] })),
  "progress of the prompt": (n) =>
    times(n, (at) => ({ type: "progress", choice: 0, processed: at, total: n, cached: 0, ms: at })),
  "finish reasons": (n) => times(n, () => ({ type: "finish", choice: 0, reason: "stop" })),
};

/** Answers as events. */
export const eventShapes: Readonly<Record<string, Shape<GenerationEvent[]>>> = Object.fromEntries(
  Object.entries(middles).map(([name, middle]) => [
    name,
    (n: number): GenerationEvent[] => [
      { type: "start", choice: 0 },
      ...middle(n),
      { type: "finish", choice: 0, reason: "stop" },
      { type: "usage", usage: { promptTokens: 1, completionTokens: n } },
      { type: "end", end: { kind: "done" } },
    ],
  ]),
);

/** Texts that are no answer, or one that is damaged, for every reader of streams. */
export const frameShapes: Readonly<Record<string, Shape<string>>> = {
  comments: (n) => ": ping\n\n".repeat(n),
  "blank lines": (n) => "\n".repeat(n),
  CR: (n) => "\r".repeat(n),
  "one line": (n) => "x".repeat(n),
  spaces: (n) => " ".repeat(n),
  words: (n) => "hello there\n".repeat(n),
  "an error page of tags": (n) => `<html>${"<".repeat(n)}`,
  "an error page of titles": (n) => `${"<title".repeat(n)}\n\n`,
  "an error page of scripts": (n) => `${"<script>".repeat(n)}\n\n`,
  "an event of many lines": (n) => `${"data: x\n".repeat(n)}\n`,
  "an event of many objects": (n) => "data: {}\n".repeat(n),
  "indented fields": (n) => "  data: {}\n".repeat(n),
  "names of events": (n) => "event: x\n".repeat(n),
  "events without data": (n) => "data:\n\n".repeat(n),
  "end marks": (n) => "data: [DONE]\n\n".repeat(n),
  braces: (n) => `data: ${"{".repeat(n)}\n\n`,
  "a string without an end": (n) => `data: {"a":NaN,"b":"${'\\"'.repeat(n)}\n\n`,
  "an error of spaces": (n) => `data: {"error":{"message":"${" ".repeat(n)}x"}}\n\n`,
  "an error of limits": (n) => `data: {"error":{"message":"${"max_".repeat(n)}"}}\n\n`,
  "an error of details": (n) => `data: {"detail":[${'{"msg":"a","loc":["b"]},'.repeat(n)}{}]}\n\n`,
};

const chunk = (choice: object): string =>
  `data: ${JSON.stringify({ id: "x", created: 1, model: "m", object: "chat.completion.chunk", choices: [choice] })}\n\n`;
const toolCalls = (...calls: object[]): string => chunk({ index: 0, delta: { tool_calls: calls } });
const event = (value: { readonly type: string; readonly [name: string]: unknown }): string =>
  `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
const joined = (n: number, make: (at: number) => string): string => times(n, make).join("");
const block = (index: number, content_block: object): string =>
  event({ type: "content_block_start", index, content_block });
const toolUse = (at: number): object => ({ type: "tool_use", id: `toolu_${at}`, name: "f", input: {} });
const functionCall = (at: number): object => ({
  type: "function_call",
  id: `fc_${at}`,
  call_id: `call_${at}`,
  name: "f",
});

const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;

/** A chunk of Gemini's API with one candidate. */
function candidate(parts: readonly object[], more: object = {}): string {
  return frame({ candidates: [{ content: { parts, role: "model" }, ...more }] });
}

/** Streams of each API that no writer of this server writes. */
export const wireShapes: Readonly<Record<string, Readonly<Record<string, Shape<string>>>>> = {
  chat: {
    "calls without ids under one index": (n) =>
      joined(n, () => toolCalls({ index: 0, function: { name: "f", arguments: "{}" } })),
    "calls without indices": (n) =>
      joined(n, (at) => toolCalls({ id: `c${at}`, function: { name: "f", arguments: "{" } })),
    "calls that wait for the first": (n) =>
      toolCalls({ index: 0, id: "a", function: { name: "f", arguments: "{" } }) +
      joined(n, (at) => toolCalls({ index: at + 1, id: `c${at}`, function: { name: "f", arguments: "{}" } })) +
      joined(n, () => toolCalls({ index: 0, function: { arguments: " " } })),
    "calls in one chunk": (n) =>
      toolCalls(...times(n, (at) => ({ index: at, id: `c${at}`, function: { name: "f", arguments: "{}" } }))),
    "changing ids of a call": (n) =>
      joined(n, (at) =>
        toolCalls({ index: 0, id: `c${at}`, function: { name: "f", arguments: at === 0 ? "{" : " " } }),
      ),
    "calls with one id": (n) =>
      joined(n, (at) => toolCalls({ index: at, id: "c", function: { name: "f", arguments: "{}" } })),
    "arguments without a name": (n) => joined(n, () => toolCalls({ index: 0, function: { arguments: "x" } })),
    choices: (n) => joined(n, (at) => chunk({ index: at, delta: { content: "x" } })),
    "content after the end": (n) =>
      joined(n, () => chunk({ index: 0, delta: { content: "x" }, finish_reason: "stop" })),
    "foreign members": (n) => joined(n, (at) => chunk({ index: 0, delta: { [`x_${at}`]: at } })),
    "many members": (n) => chunk({ index: 0, delta: Object.fromEntries(times(n, (at) => [`x_${at}`, at])) }),
    "parts of a content": (n) => chunk({ index: 0, delta: { content: times(n, () => ({ type: "text", text: "x" })) } }),
    "chunks without choices": (n) =>
      joined(n, (at) => `data: {"usage":{"prompt_tokens":${at},"completion_tokens":1}}\n\n`),
    "bare JSON": (n) => joined(n, () => `{"choices":[{"index":0,"delta":{"content":"x"}}]}\n`),
  },
  completions: {
    choices: (n) => joined(n, (at) => `data: {"choices":[{"index":${at},"text":"x"}]}\n\n`),
    "choices in one chunk": (n) =>
      `data: ${JSON.stringify({ choices: times(n, (index) => ({ index, text: "x", finish_reason: "stop" })) })}\n\n`,
  },
  responses: {
    "items that are open": (n) =>
      joined(n, (at) => event({ type: "response.output_item.added", output_index: at, item: functionCall(at) })),
    "texts that come whole after each delta": (n) =>
      joined(n, () => {
        const place = { item_id: "msg_1", output_index: 0, content_index: 0 };
        return (
          event({ type: "response.output_text.delta", ...place, delta: "x" }) +
          event({ type: "response.output_text.done", ...place, text: "x" })
        );
      }),
    "items that end again": (n) =>
      joined(n, () =>
        event({ type: "response.output_item.done", output_index: 0, item: { id: "a", type: "message", content: [] } }),
      ),
    "progress with other members": (n) =>
      joined(n, (at) =>
        event({ type: "response.in_progress", response: { id: `resp_${at}`, model: "m", [`x_${at}`]: at } }),
      ),
    "texts of many parts": (n) =>
      joined(n, (at) =>
        event({ type: "response.output_text.delta", item_id: "msg_1", output_index: 0, content_index: at, delta: "x" }),
      ),
    "annotations that come whole": (n) =>
      joined(n, (at) =>
        event({
          type: "response.output_text.annotation.added",
          item_id: "msg_1",
          output_index: 0,
          content_index: 0,
          annotation: { url: `u${at}` },
        }),
      ),
    "unknown items": (n) =>
      joined(n, (at) =>
        event({ type: "response.output_item.done", output_index: at, item: { type: "x", id: `x_${at}` } }),
      ),
    "input before the name": (n) =>
      joined(n, () =>
        event({ type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 0, delta: " " }),
      ),
  },
  messages: {
    "ends with other members": (n) =>
      joined(n, (at) =>
        event({ type: "message_delta", delta: { [`x_${at}`]: at }, usage: { [`y_${at}`]: at }, [`z_${at}`]: at }),
      ),
    starts: (n) => joined(n, (at) => event({ type: "message_start", message: { id: `msg_${at}`, content: [] } })),
    "calls that are open": (n) => joined(n, (at) => block(at, toolUse(at))),
    "calls that are open, and their ends": (n) =>
      joined(n, (at) => block(at, toolUse(at))) +
      joined(n, (at) =>
        event({ type: "content_block_delta", index: at, delta: { type: "input_json_delta", partial_json: "{}" } }),
      ) +
      joined(n, (at) => event({ type: "content_block_stop", index: at })),
    "blocks under one index": (n) => joined(n, () => block(0, { type: "text", text: "x" })),
    "deltas without a block": (n) =>
      joined(n, (at) =>
        event({
          type: "content_block_delta",
          index: at,
          delta: { type: at % 2 === 0 ? "text_delta" : "thinking_delta", text: "x", thinking: "x" },
        }),
      ),
    citations: (n) =>
      block(0, { type: "text", text: "" }) +
      joined(n, (at) =>
        event({
          type: "content_block_delta",
          index: 0,
          delta: { type: "citations_delta", citation: { url: `u${at}` } },
        }),
      ),
    signatures: (n) =>
      block(0, { type: "thinking", thinking: "" }) +
      joined(n, () =>
        event({ type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "x" } }),
      ),
    "blocks of one message": (n) =>
      `${JSON.stringify({ type: "message", content: times(n, (at) => (at % 2 === 0 ? { type: "text", text: "x" } : toolUse(at))), stop_reason: "end_turn" })}\n`,
  },
  ollama: {
    calls: (n) => joined(n, () => `{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]}}\n`),
    "calls in one line": (n) =>
      `${JSON.stringify({ message: { tool_calls: times(n, () => ({ function: { name: "f", arguments: {} } })) } })}\n`,
    texts: (n) => joined(n, () => `{"model":"m","message":{"content":"x"}}\n`),
    "lines without content": (n) => joined(n, () => `{"done":false}\n`),
  },
  gemini: {
    "texts of one chunk": (n) => candidate(times(n, () => ({ text: "x" }))),
    "calls of one chunk": (n) => candidate(times(n, () => ({ functionCall: { id: "a", name: "f", args: {} } }))),
    "thoughts with signatures": (n) =>
      joined(n, () => candidate([{ text: "x", thought: true, thoughtSignature: "c2ln" }])),
    "texts with signatures": (n) => joined(n, () => candidate([{ text: "x", thoughtSignature: "c2ln" }])),
    candidates: (n) => joined(n, (at) => candidate([{ text: "x" }], { index: at })),
    "ends of candidates": (n) => joined(n, (at) => candidate([], { index: at, finishReason: "STOP" })),
    code: (n) =>
      joined(n, () => candidate([{ executableCode: { code: "1" } }, { codeExecutionResult: { output: "1" } }])),
    "pages of an answer": (n) =>
      candidate([{ text: "x" }], {
        finishReason: "STOP",
        groundingMetadata: { groundingChunks: times(n, (at) => ({ web: { uri: `http://a/${at}` } })) },
      }),
    "parts of unknown kinds": (n) => joined(n, (at) => candidate([{ [`x_${at}`]: at }])),
    "chunks without candidates": (n) => joined(n, (at) => frame({ usageMetadata: { promptTokenCount: at } })),
  },
};

/** Texts of models, for every format. `markers`: what the format writes around calls and reasoning. */
export function textShapes(markers: readonly string[]): Readonly<Record<string, Shape<string>>> {
  return {
    "a long text": (n) => "word ".repeat(n),
    "white space": (n) => " ".repeat(n),
    "line feeds": (n) => "\n".repeat(n),
    braces: (n) => "{".repeat(n),
    brackets: (n) => "[".repeat(n),
    quotes: (n) => '\\"'.repeat(n),
    tags: (n) => "<".repeat(n),
    bars: (n) => "<|".repeat(n),
    fences: (n) => "```json\n".repeat(n),
    digits: (n) => "0".repeat(n),
    "beginnings of reasoning": (n) => "<think>".repeat(n),
    "ends of reasoning": (n) => "</think>".repeat(n),
    ...Object.fromEntries(
      markers.flatMap((marker) => [
        [`${marker} again and again`, (n: number) => marker.repeat(n)],
        [`${marker} and white space`, (n: number) => marker + " ".repeat(n)],
        [
          `${marker} and an open object`,
          (n: number) => `${marker}{"name": "f", "arguments": {"a": "${'\\"'.repeat(n)}`,
        ],
      ]),
    ),
  };
}
