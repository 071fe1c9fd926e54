import type { GenerationEvent, Timings, TokenLogprob } from "../../core/events.ts";
import { isObject, nonEmpty, type JsonObject } from "../../core/json.ts";
import type { AnswerReaderOptions } from "../source-port.ts";
import { AnswerReader } from "../tolerant/answer-reader.ts";
import { distinctId } from "../tolerant/call-assembler.ts";
import { readFinishReason, trueFinishReason } from "../tolerant/finish-reasons.ts";
import { badAnswer, callsWithoutCall, readFailure } from "../tolerant/read-failure.ts";
import { chatTokens, tokensOfText } from "../tolerant/read-logprobs.ts";
import { parseTolerantly } from "../tolerant/read-response.ts";

/** The reasons of an answer without a prompt: the model was loaded, or unloaded. */
const emptyReasons: ReadonlySet<unknown> = new Set(["load", "unload"]);

/**
 * Reads the answers of `/api/chat` and `/api/generate` into generation events. A stream has a JSON object on each line: deltas of the
 * text and of the reasoning, whole calls, and at last `done` with the counts. An answer without a stream is one such object with the whole
 * message. A line `{"error": "…"}` ends an answer that fails. Source: ollama 0.33.0 api/types.go, server/routes.go (`streamResponse`).
 */
export class OllamaReader extends AnswerReader {
  readonly #options: AnswerReaderOptions;
  readonly #takenIds = new Set<string>();
  #started = false;
  #calls = 0;
  #hasText = false;
  /** A line was not JSON: the last one, which was cut off, or a damaged one. */
  #damaged = false;

  constructor(options: AnswerReaderOptions) {
    super(options.frameLimit);
    this.#options = options;
  }

  get finished(): boolean {
    return this.ended;
  }

  get begun(): boolean {
    return this.#started;
  }

  readBody(body: unknown): GenerationEvent[] {
    this.#line(body);
    if (!this.ended) this.fail(badAnswer("The upstream's answer is not complete: it has no `done`."));
    return this.handOut();
  }

  frame(data: string, event: string, bare: boolean): void {
    const text = data.trim();
    if (this.ended || text === "") return;
    if (this.#damaged) return this.fail(badAnswer("The upstream sent a line that is not JSON."));
    if (text.startsWith("{") && parseTolerantly(text, this.repairs) === undefined) this.#damaged = true;
    else this.content(data, event, bare);
  }

  protected object(value: object | null): void {
    this.#line(value);
  }

  /** Reads a line of a stream, or a whole answer. */
  #line(value: unknown): void {
    if (!isObject(value)) return this.fail(badAnswer("The upstream's answer is not an object."));
    const failure = value["error"] === undefined ? null : readFailure(value);
    if (failure) return this.fail(failure);
    const { message, done } = value;
    const {
      content,
      thinking,
      tool_calls: calls,
    } = isObject(message)
      ? message
      : { content: value["response"], thinking: value["thinking"], tool_calls: value["tool_calls"] };
    if (typeof thinking === "string" && thinking !== "") {
      this.#start(value);
      this.out.push({ type: "reasoning-delta", choice: 0, text: thinking });
    }
    const logprobs = Array.isArray(value["logprobs"]) ? chatTokens(value["logprobs"]).map(withTrueBytes) : [];
    const hasOthers = (typeof thinking === "string" && thinking !== "") || Array.isArray(calls);
    const text = typeof content === "string" ? content : "";
    this.#text(content, tokensOfText(logprobs, text, hasOthers, this.repairs), value);
    for (const call of Array.isArray(calls) ? calls : []) this.#call(call, value);
    if (done === true) this.#done(value);
  }

  /** Opens the choice, if it is not open. */
  #start({ model, created_at: createdAt }: JsonObject): void {
    if (this.#started) return;
    this.#started = true;
    const name = nonEmpty(model);
    const created = typeof createdAt === "string" ? Math.floor(Date.parse(createdAt) / 1000) : Number.NaN;
    const source = { ...(created > 0 && { created }), ...(name !== undefined && { model: name }) };
    this.out.push({ type: "start", choice: 0, ...(Object.keys(source).length > 0 && { source }) });
  }

  #text(content: unknown, logprobs: readonly TokenLogprob[], line: JsonObject): void {
    if (content !== undefined && content !== null && typeof content !== "string") this.repairs.note("content");
    const text = typeof content === "string" ? content : "";
    if (text === "" && logprobs.length === 0) return;
    this.#start(line);
    this.#hasText ||= /\S/.test(text);
    this.out.push({ type: "text-delta", choice: 0, text, ...(logprobs.length > 0 && { logprobs }) });
  }

  /** Emits a call, which is whole. Before ollama 0.12.10 calls have no ids. */
  #call(call: unknown, line: JsonObject): void {
    const { id, function: called } = isObject(call) ? call : {};
    const { name, arguments: args } = isObject(called) ? called : {};
    if (typeof name !== "string" || name === "") {
      this.repairs.note("nameless-call");
      return this.#text(JSON.stringify(call), [], line);
    }
    this.#start(line);
    const index = this.#calls++;
    const text = this.#argumentsText(args);
    this.out.push(
      { type: "tool-call-start", choice: 0, index, id: this.#idFor(id), name },
      { type: "tool-call-delta", choice: 0, index, arguments: text },
    );
    const isWhole = isObject(parseTolerantly(text, this.repairs));
    if (isWhole) this.out.push({ type: "tool-call-end", choice: 0, index, status: "succeeded" });
    else this.out.push({ type: "tool-call-end", choice: 0, index, status: "failed", raw: text });
  }

  #argumentsText(args: unknown): string {
    if (isObject(args)) return JSON.stringify(args);
    this.repairs.note(args === undefined || args === null ? "no-arguments" : "call-arguments");
    if (typeof args === "string" && args.trim() !== "") return args;
    return typeof args === "string" ? "{}" : JSON.stringify(args ?? {});
  }

  #idFor(id: unknown): string {
    const own = nonEmpty(id);
    if (own !== undefined && !this.#takenIds.has(own)) {
      this.#takenIds.add(own);
      return own;
    }
    this.repairs.note("call-id");
    return distinctId(this.#options.newCallId, this.#takenIds);
  }

  #done(line: JsonObject): void {
    this.#start(line);
    const { done_reason: given } = line;
    const read = readFinishReason(given);
    if (read?.reason === "failed")
      return this.fail(badAnswer(`The upstream ended the answer with done_reason "${String(given)}".`));
    // Before ollama 0.1.38 there is no reason.
    if (!read) this.repairs.note("no-finish");
    else if (!read.exact && !emptyReasons.has(given)) this.repairs.note("finish-reason");
    const { callsInText = false, legacyFunctions } = this.#options;
    const reason = trueFinishReason({
      received: read?.reason ?? "stop",
      calls: this.#calls,
      sawLegacyCall: false,
      hasText: this.#hasText,
      callsInText,
      legacyFunctions,
      isOpenAi: false,
    });
    if (reason === null) return this.fail(callsWithoutCall());
    if (read?.reason === "tool-calls" && reason === "stop") this.repairs.note("finish-without-calls");
    this.out.push({ type: "finish", choice: 0, reason });
    const promptTokens = countOf(line["prompt_eval_count"]);
    const completionTokens = countOf(line["eval_count"]);
    if (promptTokens !== undefined || completionTokens !== undefined) {
      if (promptTokens === undefined) this.repairs.note("usage-value");
      const usage = { promptTokens: promptTokens ?? 0, completionTokens: completionTokens ?? 0 };
      this.out.push({ type: "usage", usage, timings: timingsOf(line, usage) });
    }
    this.conclude({ kind: "done" });
  }
}

/**
 * Ollama computes `bytes` from the token's text, in which the bytes of an incomplete character have been replaced by U+FFFD: they are those
 * of U+FFFD, not of the token. Unknown bytes are null. Source: ollama 0.33.0 llm/server.go, `TokenLogprob`.
 */
function withTrueBytes(token: TokenLogprob): TokenLogprob {
  const isCut = (text: string): boolean => text.includes("\ufffd");
  if (!isCut(token.token) && !token.top.some((other) => isCut(other.token))) return token;
  const top = token.top.map((other) => (isCut(other.token) ? { ...other, bytes: null } : other));
  return { ...token, top, bytes: isCut(token.token) ? null : token.bytes };
}

/** A count that is 0 is absent. */
function countOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.trunc(value) : undefined;
}

/** Durations are in nanoseconds. The time to load the model is the time before the prompt. */
function timingsOf(
  line: JsonObject,
  { promptTokens, completionTokens }: { readonly promptTokens: number; readonly completionTokens: number },
): Timings {
  const milliseconds = (name: string): number => (countOf(line[name]) ?? 0) / 1e6;
  const promptMs = milliseconds("prompt_eval_duration");
  const generationMs = milliseconds("eval_duration");
  const perSecond = (tokens: number, ms: number): number => (ms > 0 ? (tokens / ms) * 1000 : 0);
  return {
    queuedMs: milliseconds("load_duration"),
    promptMs,
    generationMs,
    promptTokensPerSecond: perSecond(promptTokens, promptMs),
    tokensPerSecond: perSecond(completionTokens, generationMs),
  };
}
