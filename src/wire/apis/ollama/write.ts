import type { Generation } from "../../core/accumulate.ts";
import type {
  FinishReason,
  GenerationEnd,
  GenerationEvent,
  Timings,
  TokenAlternative,
  TokenLogprob,
  Usage,
} from "../../core/events.ts";
import type { JsonObject } from "../../core/json.ts";
import { objectIn } from "../../core/json.ts";
import type { JsonValue } from "../json-text.ts";
import { logprobNumber } from "../logprobs.ts";
import { orderedMembers } from "../members.ts";
import type { AnswerContext, StreamWriter } from "../port.ts";
import { goJson, goString, goTime } from "./go-values.ts";
import { writeContext, type OllamaAnswer } from "./request.ts";
import { ollamaChatResponse, ollamaGenerateResponse, ollamaMessage } from "./schema.ts";

type Members = { [name: string]: JsonValue | undefined };

/** The context of one answer. */
export interface OllamaContext extends Required<NonNullable<AnswerContext["clock"]>> {
  readonly answer: OllamaAnswer;
  readonly model: string;
}

export function ollamaContext({ model, created, clock }: AnswerContext, answer: OllamaAnswer): OllamaContext {
  return { answer, model, ...(clock ?? { beganMs: created * 1000, nowMs: () => created * 1000 }) };
}

/** The content of a line. */
interface Content {
  readonly text?: string;
  readonly thinking?: string;
  readonly calls?: readonly WrittenCall[];
  readonly logprobs?: readonly TokenLogprob[];
}

interface WrittenCall {
  readonly id: string;
  readonly index: number;
  readonly name: string;
  readonly arguments: string;
}

/** Writes the body of an answer that is not streamed. */
export function writeOllamaResponse(generation: Generation, context: OllamaContext): string {
  const { answer } = context;
  const [choice] = generation.choices;
  const content: Content = {
    text: (choice?.text ?? "") + (choice?.refusal ?? ""),
    thinking: choice?.reasoning ?? "",
    calls: (choice?.toolCalls ?? []).map((call, index) => ({ ...call, index })),
    logprobs: answer.topLogprobs === undefined ? [] : (choice?.textLogprobs ?? []),
  };
  if (answer.only) return goJson(line(content, context, { done_reason: answer.only }));
  const last = {
    done_reason: doneReason(choice?.finish?.reason),
    ...contextMember(answer, content.text ?? ""),
    ...metrics(context, generation.usage, generation.timings),
  };
  return goJson(line(content, context, last));
}

/** Writes an answer as lines of JSON. The last line has `done: true`. */
export class OllamaStreamWriter implements StreamWriter {
  readonly #context: OllamaContext;
  readonly #head: string;
  readonly #afterTime: string;
  readonly #tail: string;
  /** The open call, until its arguments are complete. */
  #call: { readonly id: string; readonly index: number; readonly name: string; arguments: string } | undefined;
  #usage: Usage | undefined;
  #timings: Timings | undefined;
  #finish: FinishReason | undefined;
  #firstMs: number | undefined;
  /** The text of the answer, for `context`. */
  readonly #texts: string[] | undefined;
  #ended = false;

  constructor(context: OllamaContext) {
    this.#context = context;
    const { model, answer } = context;
    this.#texts = answer.conversation ? [] : undefined;
    this.#head = `{"model":${goString(model)},"created_at":"`;
    const isChat = answer.endpoint === "chat";
    this.#afterTime = isChat ? '","message":{"role":"assistant","content":' : '","response":';
    this.#tail = isChat ? '},"done":false}\n' : ',"done":false}\n';
  }

  write(events: readonly GenerationEvent[]): string {
    let text = "";
    for (const event of events) text += this.#event(event);
    return text;
  }

  /** An answer has no beginning of its own. */
  open(): string {
    return "";
  }

  /** A line without content, as Ollama sends for tokens that are not visible: clients read every line as JSON. */
  keepAlive(): string {
    return this.#ended ? "" : this.#textLine("");
  }

  #event(event: GenerationEvent): string {
    if (this.#ended || ("choice" in event && event.choice !== undefined && event.choice > 0)) return "";
    switch (event.type) {
      case "text-delta":
      case "refusal-delta":
        return this.#text(event.text, event.logprobs);
      case "reasoning-delta":
        this.#firstMs ??= this.#context.nowMs();
        if (event.text === "" && !event.logprobs?.length) return "";
        return this.#line({ thinking: event.text, logprobs: this.#asked(event.logprobs) });
      case "tool-call-start": {
        const { id, index, name } = event;
        this.#firstMs ??= this.#context.nowMs();
        this.#call = { id, index, name, arguments: "" };
        return "";
      }
      case "tool-call-delta":
        if (this.#call) this.#call.arguments += event.arguments;
        return "";
      case "tool-call-end": {
        const call = this.#call;
        this.#call = undefined;
        return call ? this.#line({ calls: [call] }) : "";
      }
      case "finish":
        this.#finish ??= event.reason;
        return "";
      case "usage":
        this.#usage = event.usage;
        this.#timings = event.timings ?? this.#timings;
        return "";
      case "end":
        return this.#end(event.end);
      default:
        return "";
    }
  }

  #asked(logprobs: readonly TokenLogprob[] | undefined): readonly TokenLogprob[] {
    return this.#context.answer.topLogprobs === undefined ? [] : (logprobs ?? []);
  }

  #text(text: string, tokens: readonly TokenLogprob[] | undefined): string {
    this.#firstMs ??= this.#context.nowMs();
    this.#texts?.push(text);
    const logprobs = this.#asked(tokens);
    if (logprobs.length > 0) return this.#line({ text, logprobs });
    return text === "" ? "" : this.#textLine(text);
  }

  /** The usual line, from a prepared template. A test compares it with `#line`. */
  #textLine(text: string): string {
    return this.#head + goTime(this.#context.nowMs()) + this.#afterTime + goString(text) + this.#tail;
  }

  #line(content: Content): string {
    return `${goJson(line(content, this.#context))}\n`;
  }

  #end(end: GenerationEnd): string {
    this.#ended = true;
    if (end.kind === "client-gone") return "";
    if (end.kind !== "done") return `${goJson({ error: end.failure.message })}\n`;
    const { answer } = this.#context;
    const last = {
      done_reason: doneReason(this.#finish),
      ...contextMember(answer, this.#texts?.join("") ?? ""),
      ...metrics(this.#context, this.#usage, this.#timings, this.#firstMs),
    };
    return `${goJson(line({}, this.#context, last))}\n`;
  }
}

/** One line, its members in the order of the wire. `last`: the members of the last line, or of a whole answer. */
function line({ text = "", thinking, calls, logprobs }: Content, context: OllamaContext, last?: Members): Members {
  const { answer, model, nowMs } = context;
  const said: Members = {
    ...(thinking && { thinking }),
    ...(calls && calls.length > 0 && { tool_calls: calls.map(callObject) }),
  };
  const isChat = answer.endpoint === "chat";
  const members: Members = {
    model,
    created_at: goTime(nowMs()),
    ...(isChat
      ? { message: orderedMembers(ollamaMessage, { role: "assistant", content: text, ...said }) }
      : { response: text, ...said }),
    done: last !== undefined,
    ...(logprobs && logprobs.length > 0 && { logprobs: logprobs.flatMap((token) => logprobOf(token, answer)) }),
    ...last,
  };
  return orderedMembers(isChat ? ollamaChatResponse : ollamaGenerateResponse, members);
}

function callObject({ id, index, name, arguments: text }: WrittenCall): JsonValue {
  return { ...(id !== "" && { id }), function: { index, name, arguments: argumentsOf(text) as JsonValue } };
}

/** The arguments of a call as an object. Text that is not the JSON of an object is its member `INVALID_JSON`, as in Anthropic's API. */
function argumentsOf(text: string): JsonObject {
  if (text.trim() === "") return {};
  return objectIn(text) ?? { INVALID_JSON: text };
}

function logprobOf({ token, logprob, bytes, top }: TokenLogprob, { topLogprobs = 0 }: OllamaAnswer): JsonValue[] {
  // Only tokens of an echoed prompt have none.
  if (logprob === null) return [];
  const alternatives = topLogprobs > 0 ? top.slice(0, topLogprobs).flatMap(tokenObject) : [];
  return [{ ...tokenMembers(token, logprob, bytes), ...(alternatives.length > 0 && { top_logprobs: alternatives }) }];
}

function tokenObject({ token, logprob, bytes }: TokenAlternative): Members[] {
  return logprob === null ? [] : [tokenMembers(token, logprob, bytes)];
}

function tokenMembers(token: string, logprob: number, bytes: readonly number[] | null): Members {
  // The bytes of a token that is part of a character cannot be computed from its text.
  const known = bytes ?? (token.includes("\ufffd") ? [] : [...new TextEncoder().encode(token)]);
  return { token, logprob: logprobNumber(logprob, JSON.stringify), ...(known.length > 0 && { bytes: known }) };
}

/** Source: llm/server.go, `DoneReason`. A call ends an answer like any other text. */
function doneReason(reason: FinishReason | undefined): "stop" | "length" {
  return reason === "length" ? "length" : "stop";
}

function contextMember({ conversation }: OllamaAnswer, text: string): Members {
  return conversation ? { context: writeContext([...conversation, { role: "assistant", content: text }]) } : {};
}

const nanosecondsPerMs = 1e6;

/**
 * The counts and durations of the last line. What is unknown is absent, as a zero is in Go. Without timings of the source, durations are
 * those that this server has seen: until the first token, and from there. `firstMs`: when the first token came, of a stream.
 */
function metrics(
  { beganMs, nowMs }: OllamaContext,
  usage: Usage | undefined,
  timings: Timings | undefined,
  firstMs?: number | undefined,
): Members {
  const totalMs = Math.max(0, nowMs() - beganMs);
  const toFirstMs = firstMs === undefined ? undefined : Math.max(0, firstMs - beganMs);
  const promptMs = timings?.promptMs ?? toFirstMs ?? 0;
  const evalMs = timings?.generationMs ?? (toFirstMs === undefined ? 0 : totalMs - toFirstMs);
  const members = {
    total_duration: totalMs * nanosecondsPerMs,
    load_duration: timings ? (totalMs - timings.promptMs - timings.generationMs) * nanosecondsPerMs : 0,
    prompt_eval_count: usage?.promptTokens ?? 0,
    prompt_eval_duration: promptMs * nanosecondsPerMs,
    eval_count: usage?.completionTokens ?? 0,
    eval_duration: evalMs * nanosecondsPerMs,
  };
  return Object.fromEntries(
    Object.entries(members)
      .map(([name, value]) => [name, Math.round(value)] as const)
      .filter(([, value]) => value > 0),
  );
}
