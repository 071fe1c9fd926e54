import { expect } from "vitest";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { responseEvents } from "../support/response-stream.ts";
import { limitOf, promptOf } from "./scenarios.ts";
import type { Scenario } from "./scenarios.ts";
import { askMessage } from "./support.ts";
import type { Json } from "./support.ts";

// A client of each API, which requests a scenario and returns the answer.

/** The content of an answer of any API. */
export interface Answer {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly (readonly [name: string, input: unknown])[];
  readonly end: "stop" | "length" | "calls" | null;
  readonly tokens: readonly [input: unknown, output: unknown] | null;
  /** The status if nothing was sent before the error, or that an error came after it. */
  readonly failed: false | "status" | "stream";
  /** What a 404 says. */
  readonly refusal: string | null;
  /** Calls that a client would run. */
  readonly runs: readonly string[];
}

export function nothing(): Answer {
  return { text: "", reasoning: "", calls: [], end: null, tokens: [9, 4], failed: false, refusal: null, runs: [] };
}

/** An answer without content. */
function refused(status: number, body: string): Answer {
  const { error } = JSON.parse(body) as { error: Json };
  expect(error["message"]).toBeTypeOf("string");
  return { ...nothing(), tokens: null, failed: "status", refusal: status === 404 ? String(error["message"]) : null };
}

const tools = ["look", "wait"].map((name) => ({ name, input_schema: { type: "object" } }));

export async function byMessages(
  server: TruewireServer,
  model: string,
  scenario: Scenario,
  stream: boolean,
): Promise<Answer> {
  const messages = [{ role: "user", content: promptOf(scenario, "turn") }];
  const answer = await askMessage(server, { model, messages, stream, tools, max_tokens: limitOf(scenario) });
  const { message, error, closedCalls, status } = answer;
  if (status !== 200 || error) {
    const refusal = status === 404 ? refused(status, JSON.stringify(message)) : nothing();
    const { type, request_id, error: sent } = (error ?? message) as Json & { error: Json };
    expect({ type, request_id }).toMatchObject({ type: "error", request_id: expect.stringMatching(/^req_/) as string });
    expect(sent["message"]).toBeTypeOf("string");
    return { ...refusal, tokens: null, failed: error ? "stream" : "status", runs: closedCalls };
  }
  const blocks = message.content ?? [];
  const usage = message["usage"] as Json;
  const calls = blocks.filter(({ type }) => type === "tool_use");
  for (const call of calls) expect(call["id"]).toMatch(/^[a-zA-Z0-9_-]+$/);
  return {
    text: blocks.map(({ text }) => text ?? "").join(""),
    reasoning: blocks.map(({ thinking }) => thinking ?? "").join(""),
    calls: calls.map(({ name, input }) => [String(name), input] as const),
    end:
      ({ end_turn: "stop", max_tokens: "length", tool_use: "calls" } as const)[String(message["stop_reason"])] ?? null,
    tokens: [usage["input_tokens"], usage["output_tokens"]],
    failed: false,
    refusal: null,
    runs: stream ? closedCalls : calls.map(({ name }) => String(name)),
  };
}

export async function byChat(
  server: TruewireServer,
  model: string,
  scenario: Scenario,
  stream: boolean,
): Promise<Answer> {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model,
      messages: [{ role: "user", content: promptOf(scenario, "turn") }],
      max_tokens: limitOf(scenario),
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
  const said = { text: "", reasoning: "", end: null as Answer["end"] };
  const calls: { name: string; json: string }[] = [];
  let usage: Json = {};
  for (const chunk of chunks) {
    usage = (chunk["usage"] as Json | null) ?? usage;
    const [choice] = chunk["choices"] as { delta?: Json; message?: Json; finish_reason: string | null }[];
    const { content, reasoning_content, tool_calls } = choice?.delta ?? choice?.message ?? {};
    said.text += (content as string | null | undefined) ?? "";
    said.reasoning += (reasoning_content as string | undefined) ?? "";
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

export async function byCompletions(
  server: TruewireServer,
  model: string,
  scenario: Scenario,
  stream: boolean,
): Promise<Answer> {
  const response = await fetch(`${server.url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model,
      prompt: promptOf(scenario, "text"),
      max_tokens: limitOf(scenario),
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

export async function byResponses(
  server: TruewireServer,
  model: string,
  scenario: Scenario,
  stream: boolean,
): Promise<Answer> {
  const response = await fetch(`${server.url}/v1/responses`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model,
      input: [{ role: "user", content: promptOf(scenario, "turn") }],
      max_output_tokens: limitOf(scenario),
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
    reasoning: said("reasoning"),
    calls: calls.map(({ name, arguments: json }) => [String(name), JSON.parse(String(json))] as const),
    end: status === "incomplete" ? "length" : calls.length > 0 ? "calls" : "stop",
    tokens: [usage["input_tokens"], usage["output_tokens"]],
    failed: false,
    refusal: null,
    runs: (stream ? runs : calls).map(({ name }) => String(name)),
  };
}
