import { hasRecordings, readRecordings } from "../../../test/support/recordings.ts";
import { expect, test } from "vitest";
import { accumulate } from "../core/accumulate.ts";
import type { FinishReason, GenerationEvent, SourceIdentity, TokenLogprob, Usage } from "../core/events.ts";
import { writeChatResponse } from "./chat/write-body.ts";
import { ChatStreamWriter } from "./chat/write-stream.ts";
import { writeCompletionResponse } from "./completions/write-body.ts";
import { kindOfStatus } from "../core/failure.ts";
import type { ChoicesContext } from "./choices-answer.ts";
import { writeErrorBody } from "./error-body.ts";
import { answerId } from "./ids.ts";
import { exact } from "./profile.ts";

// What OpenAI sent, read naively into events and written again, must be what OpenAI sent. The recordings lie beside the repository.
const recorded = test.skipIf(!hasRecordings("to read"));

recorded("chat streams of OpenAI since 2025-08 are written again to the byte", () => {
  const streams = readRecordings("chat-stream").filter(
    ({ date, fidelity }) => (date ?? "") >= "2025-08-05" && fidelity.startsWith("raw"),
  );
  const changed = streams.filter(({ body }) => sameLuck(rewrittenChatStream(body)) !== sameLuck(body));
  expect(streams.length).toBeGreaterThan(150);
  expect(changed.map(({ name, date }) => `${date} ${name}`)).toEqual([]);
});

recorded("chat bodies of OpenAI are written again to the byte", () => {
  const bodies = readRecordings("chat").filter(
    ({ date, fidelity, status }) => (date ?? "") >= "2025-08-05" && fidelity === "raw" && status === 200,
  );
  const changed = bodies.filter(({ body }) => rewrittenChatBody(body) !== body);
  expect(bodies.length).toBeGreaterThan(200);
  // Not OpenAI's bytes: two that a recorder wrote again in one line, and one of a double (its `gpt-audio` is of another year).
  const others = changed.filter(({ body }) => body.startsWith("{\n"));
  expect(others.length).toBeLessThanOrEqual(1);
  expect(others.every(({ body }) => body.includes('"audio": {') && !body.endsWith("\n"))).toBe(true);
  expect(changed.length).toBeLessThan(bodies.length / 50);
});

recorded("completions bodies of OpenAI are written again to the byte", () => {
  const bodies = readRecordings("completions").filter(({ fidelity, status }) => fidelity === "raw" && status === 200);
  const changed = bodies.filter(({ body }) => rewrittenCompletionBody(body) !== body);
  expect(bodies.length).toBeGreaterThan(25);
  // Not OpenAI's bytes: one line each.
  expect(changed.filter(({ body }) => body.startsWith("{\n"))).toEqual([]);
  expect(changed.length).toBeLessThan(5);
});

recorded("error bodies of OpenAI are written again to the byte", () => {
  // Newly formatted by its recorder: everything on one line.
  const bodies = readRecordings("errors").filter(({ fidelity, body }) => fidelity === "raw" && body.startsWith("{\n"));
  expect(bodies.length).toBeGreaterThan(12);
  for (const { name, status, endpoint, body, headers } of bodies) {
    const { error }: { error: { message: string; type: string; param: string | null; code: string | null } } =
      JSON.parse(body);
    const { type: sourceType, ...told } = error;
    const written = writeErrorBody({ kind: kindOfStatus(status), status, sourceType, ...told }, exact);
    // On these endpoints, which are not ours, the application itself refuses keys.
    if (["/v1/responses", "/v1/moderations"].includes(endpoint) && status === 401) continue;
    expect(written.body, name).toBe(body);
    if (headers["content-type"] !== undefined) expect(written.contentType).toBe(headers["content-type"]);
  }
});

recorded("ids of chat streams begin with the time of creation", () => {
  let checked = 0;
  let late = 0;
  for (const { body, date } of readRecordings("chat-stream")) {
    const [chunk] = chunksOf(body);
    if (!chunk || (date ?? "") < "2024-09-01" || !/^chatcmpl-[0-9A-Za-z]{29}$/.test(chunk.id)) continue;
    const times = [chunk.created, chunk.created - 1].map((time) => answerId("chatcmpl-", time, () => 0).slice(0, 14));
    if (!times.includes(chunk.id.slice(0, 14))) late++;
    checked++;
  }
  expect(checked).toBeGreaterThan(150);
  expect(late).toBeLessThan(checked / 100);
});

/** The request asks for what a recording shows. `answers`: the chunks of a stream, or a body. */
function contextOf(answers: readonly RawAnswer[], legacyFunctions = false): ChoicesContext {
  const { created, model, ...first } = firstOf(answers);
  const choices = answers.flatMap((answer) => answer.choices);

  return {
    profile: exact,
    requested: {
      stream: true,
      includeUsage: "usage" in first,
      includeObfuscation: answers.some((answer) => "obfuscation" in answer),
      logprobs: choices.some(({ logprobs }) => logprobs),
      // OpenAI ends calls that the request forces by name with "stop".
      namedToolChoice: choices.some(({ finish_reason: reason }) => reason === "stop"),
      legacyFunctions,
      includeTimings: false,
    },
    id: "not shown",
    created,
    model,
    settings: { passExtra: true },
    random: () => 0.5,
  };
}

// --- Reading, as simply as exact input allows. ---

interface RawAnswer {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly service_tier?: string | null;
  readonly system_fingerprint?: string | null;
  readonly choices: readonly RawChoice[];
  readonly usage?: RawUsage | null;
}

interface RawChoice {
  readonly index: number;
  readonly text?: string;
  readonly delta?: RawMessage;
  readonly message?: RawMessage;
  readonly logprobs?: { readonly content: RawToken[] | null; readonly refusal: RawToken[] | null } | null;
  readonly finish_reason: "stop" | "length" | "tool_calls" | "content_filter" | "function_call" | null;
}

interface RawMessage {
  readonly role?: string;
  readonly content?: string | null;
  readonly refusal?: string | null;
  readonly annotations?: readonly unknown[];
  readonly audio?: unknown;
  readonly tool_calls?: readonly {
    readonly index?: number;
    readonly id?: string;
    readonly function: { readonly name?: string; readonly arguments: string };
  }[];
  readonly function_call?: { readonly name: string; readonly arguments: string };
}

interface RawToken {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: number[] | null;
  readonly top_logprobs: RawToken[];
}

interface RawUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens?: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details?: Record<string, number>;
  readonly completion_tokens_details?: Record<string, number>;
}

function rewrittenChatStream(body: string): string {
  const chunks = chunksOf(body);
  const events = chunks.flatMap((chunk) => [...chatEvents(chunk)]);
  return new ChatStreamWriter(contextOf(chunks)).write([...events, { type: "end", end: { kind: "done" } }]);
}

function* chatEvents(chunk: RawAnswer): Generator<GenerationEvent> {
  for (const { index: choice, delta = {}, logprobs, finish_reason: reason } of chunk.choices) {
    if (delta.role !== undefined) yield* chatOpening(chunk, choice, delta);
    const tokens = logprobs?.content?.length ? { logprobs: logprobs.content.map(tokenOf) } : {};
    const refusalTokens = logprobs?.refusal?.length ? { logprobs: logprobs.refusal.map(tokenOf) } : {};
    if (delta.content) yield { type: "text-delta", choice, text: delta.content, ...tokens };
    if (delta.refusal) yield { type: "refusal-delta", choice, text: delta.refusal, ...refusalTokens };
    for (const { index = 0, id, function: called } of delta.tool_calls ?? []) {
      if (id !== undefined) yield { type: "tool-call-start", choice, index, id, name: called.name ?? "" };
      if (called.arguments) yield { type: "tool-call-delta", choice, index, arguments: called.arguments };
    }
    if (reason) yield { type: "finish", choice, reason: reasonOf(reason) };
  }
  if (chunk.usage) yield { type: "usage", usage: usageOf(chunk.usage) };
}

function* chatOpening(chunk: RawAnswer, choice: number, delta: RawMessage): Generator<GenerationEvent> {
  const isCalls = delta.content === null && !("refusal" in delta) && !delta.tool_calls;
  const announced = isCalls
    ? "tool-calls"
    : delta.tool_calls
      ? "tool-call"
      : delta.refusal === ""
        ? "refusal"
        : undefined;
  yield { type: "start", choice, source: sourceOf(chunk), ...(announced && { announced }) };
}

function rewrittenChatBody(body: string): string {
  const answer: RawAnswer = JSON.parse(body);
  const events: GenerationEvent[] = [];
  for (const { index: choice, message = {}, logprobs, finish_reason: reason } of answer.choices) {
    const calls = message.tool_calls ?? [];
    const legacy = message.function_call;
    const tokens = logprobs?.content ? { logprobs: logprobs.content.map(tokenOf) } : {};
    events.push({ type: "start", choice, source: sourceOf(answer) });
    if (typeof message.content === "string")
      events.push({ type: "text-delta", choice, text: message.content, ...tokens });
    if (typeof message.refusal === "string") events.push({ type: "refusal-delta", choice, text: message.refusal });
    if (legacy) events.push(...wholeCall(choice, 0, "call_", legacy.name, legacy.arguments));
    for (const [index, { id = "", function: called }] of calls.entries()) {
      events.push(...wholeCall(choice, index, id, called.name ?? "", called.arguments));
    }
    for (const name of ["annotations", "audio"] as const) {
      const value = message[name];
      if (value !== undefined) events.push({ type: "extra", choice, place: "delta", value: { [name]: value } });
    }
    const isCall = calls.length > 0 || legacy;
    if (reason)
      events.push({ type: "finish", choice, reason: isCall && reason === "stop" ? "tool-calls" : reasonOf(reason) });
  }
  if (answer.usage) events.push({ type: "usage", usage: usageOf(answer.usage) });
  events.push({ type: "end", end: { kind: "done" } });
  const hasLegacyCall = answer.choices.some(({ message }) => message?.function_call !== undefined);
  return writeChatResponse(accumulate(events), contextOf([answer], hasLegacyCall));
}

function wholeCall(choice: number, index: number, id: string, name: string, text: string): GenerationEvent[] {
  return [
    { type: "tool-call-start", choice, index, id, name },
    { type: "tool-call-delta", choice, index, arguments: text },
    { type: "tool-call-end", choice, index, status: "succeeded" },
  ];
}

function rewrittenCompletionBody(body: string): string {
  const answer: RawAnswer = JSON.parse(body);
  const events = answer.choices.flatMap(({ index: choice, text = "", finish_reason: reason }): GenerationEvent[] => [
    { type: "start", choice, source: sourceOf(answer) },
    { type: "text-delta", choice, text },
    ...(reason ? [{ type: "finish", choice, reason: reasonOf(reason) } as const] : []),
  ]);
  if (answer.usage) events.push({ type: "usage", usage: usageOf(answer.usage) });
  events.push({ type: "end", end: { kind: "done" } });
  return writeCompletionResponse(accumulate(events), contextOf([answer]));
}

function chunksOf(body: string): RawAnswer[] {
  const lines = body.split("\n").filter((line) => line.startsWith("data: {"));
  return lines.map((line): RawAnswer => JSON.parse(line.slice(6)));
}

function firstOf([first]: readonly RawAnswer[]): RawAnswer {
  if (!first) throw new Error("An answer without chunks.");
  return first;
}

function sourceOf({
  id,
  created,
  model,
  service_tier: serviceTier,
  system_fingerprint: systemFingerprint,
}: RawAnswer): SourceIdentity {
  return { id, created, model, serviceTier: serviceTier ?? null, systemFingerprint: systemFingerprint ?? null };
}

function tokenOf({ token, logprob, bytes, top_logprobs: top }: RawToken): TokenLogprob {
  return { token, logprob, bytes, top };
}

/** Details in the wrong order, so that the writer has to know the right one. */
function usageOf(usage: RawUsage): Usage {
  const reversed = (details: Record<string, number>) => Object.fromEntries(Object.entries(details).reverse());
  return {
    promptTokens: usage.prompt_tokens,
    completionTokens: usage.completion_tokens ?? 0,
    totalTokens: usage.total_tokens,
    ...(usage.prompt_tokens_details && { promptDetails: reversed(usage.prompt_tokens_details) }),
    ...(usage.completion_tokens_details && { completionDetails: reversed(usage.completion_tokens_details) }),
  };
}

function reasonOf(reason: NonNullable<RawChoice["finish_reason"]>): FinishReason {
  switch (reason) {
    case "tool_calls":
      return "tool-calls";
    case "content_filter":
      return "content-filter";
    case "function_call":
      return "function-call";
    default:
      return reason;
  }
}

/** The characters of `obfuscation` are random; their number is not. */
function sameLuck(body: string): string {
  return body.replace(
    /("obfuscation":")([^"]*)"/g,
    (_, head: string, luck: string) => `${head}${"•".repeat(luck.length)}"`,
  );
}
