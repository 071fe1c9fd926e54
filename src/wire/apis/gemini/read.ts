import type { GenerationEvent, TokenLogprob, Usage } from "../../core/events.ts";
import { isObject, nonEmpty, scalarText, type JsonObject } from "../../core/json.ts";
import type { AnswerReaderOptions } from "../source-port.ts";
import { AnswerReader } from "../tolerant/answer-reader.ts";
import { distinctId } from "../tolerant/call-assembler.ts";
import { readFinishReason, trueFinishReason } from "../tolerant/finish-reasons.ts";
import { badAnswer, readFailure } from "../tolerant/read-failure.ts";
import { callState } from "./signatures.ts";

/** A candidate while its chunks are read. */
interface OpenCandidate {
  isReasoning: boolean;
  calls: number;
  codes: number;
  hasText: boolean;
  isFinished: boolean;
}

/** Members of a candidate that have events, or say where it is. */
const knownMembers: ReadonlySet<string> = new Set([
  "content",
  "finishReason",
  "index",
  "finishMessage",
  "logprobsResult",
]);

/**
 * Reads the answers of `:generateContent` and `:streamGenerateContent` into generation events. Each chunk of a stream is a whole answer with
 * the parts that are new: texts and thoughts in pieces, calls whole. The stream has no end mark. Source:
 * https://ai.google.dev/api/generate-content, and the recordings that `schema.ts` names.
 */
export class GeminiReader extends AnswerReader {
  readonly #options: AnswerReaderOptions;
  readonly #takenIds = new Set<string>();
  readonly #candidates = new Map<number, OpenCandidate>();
  #finishedCandidates = 0;
  #usage: JsonObject | undefined;

  constructor(options: AnswerReaderOptions) {
    super(options.frameLimit);
    this.#options = options;
  }

  get finished(): boolean {
    if (this.ended) return true;
    const { size } = this.#candidates;
    return size >= (this.#options.choices ?? 1) && size === this.#finishedCandidates;
  }

  get begun(): boolean {
    return this.#candidates.size > 0;
  }

  readBody(body: unknown): GenerationEvent[] {
    // Without `alt=sse`, a stream is a list of chunks.
    for (const chunk of Array.isArray(body) ? (body as unknown[]) : [body]) this.#chunk(chunk);
    if (!this.ended) this.inputOver(undefined);
    return this.handOut();
  }

  frame(data: string, event: string, bare: boolean): void {
    const text = data.trim();
    if (this.ended || text === "" || text === "[DONE]") return;
    this.content(data, event, bare);
  }

  protected object(value: object | null): void {
    for (const chunk of Array.isArray(value) ? (value as unknown[]) : [value]) this.#chunk(chunk);
  }

  /** A stream ends without a mark, so one whose candidates have finished is complete. */
  protected override inputOver(cause: Error | undefined): void {
    if (!this.finished) return super.inputOver(cause);
    this.#usageEvent();
    this.conclude({ kind: "done" });
  }

  protected override givenUp(end: Parameters<AnswerReader["abandon"]>[0]): void {
    this.#usageEvent();
    super.givenUp(this.finished ? { kind: "done" } : end);
  }

  #chunk(value: unknown): void {
    if (this.ended) return;
    if (!isObject(value)) return this.fail(badAnswer("The upstream's answer is not an object."));
    const failure = value["error"] === undefined ? null : readFailure(value);
    if (failure) return this.fail(failure);
    const { candidates, usageMetadata, promptFeedback } = value;
    if (isObject(usageMetadata)) this.#usage = usageMetadata;
    for (const [at, candidate] of (Array.isArray(candidates) ? (candidates as unknown[]) : []).entries())
      if (isObject(candidate) && !this.ended) this.#candidate(candidate, at, value);
    // A prompt that is blocked has no candidates.
    if (isObject(promptFeedback) && nonEmpty(promptFeedback["blockReason"]) !== undefined && !this.begun) {
      this.#open(0, value);
      this.out.push({ type: "extra", place: "chunk", dialect: "gemini", value: { promptFeedback } });
      this.#finish(0, "content-filter");
    }
  }

  #open(index: number, { modelVersion, responseId }: JsonObject): OpenCandidate {
    let open = this.#candidates.get(index);
    if (!open) {
      open = { isReasoning: false, calls: 0, codes: 0, hasText: false, isFinished: false };
      this.#candidates.set(index, open);
      const [id, model] = [nonEmpty(responseId), nonEmpty(modelVersion)];
      const source = { ...(id !== undefined && { id }), ...(model !== undefined && { model }) };
      this.out.push({ type: "start", choice: index, ...(Object.keys(source).length > 0 && { source }) });
    }
    return open;
  }

  #candidate(candidate: JsonObject, at: number, answer: JsonObject): void {
    const { index: given, content, finishReason, logprobsResult } = candidate;
    const index = typeof given === "number" && Number.isInteger(given) && given >= 0 ? given : at;
    if (index >= (this.#options.choices ?? Infinity)) return;
    const open = this.#open(index, answer);
    if (open.isFinished) return;
    const parts = isObject(content) && Array.isArray(content["parts"]) ? content["parts"].filter(isObject) : [];
    let logprobs = logprobsOf(logprobsResult);
    for (const part of parts) {
      const isText = typeof part["text"] === "string" && part["thought"] !== true;
      this.#part(part, index, open, isText ? logprobs : []);
      if (isText) logprobs = [];
    }
    const read = readFinishReason(finishReason);
    if (read === null) return;
    this.#endReasoning(index, open);
    const native = Object.entries(candidate).filter(([name, value]) => !knownMembers.has(name) && value !== null);
    if (native.length > 0) {
      this.#sources(candidate["groundingMetadata"], index);
      this.out.push({
        type: "extra",
        choice: index,
        place: "choice",
        dialect: "gemini",
        value: Object.fromEntries(native),
      });
    }
    if (finishReason === "MALFORMED_FUNCTION_CALL" && open.calls === 0 && !open.hasText) {
      const words = nonEmpty(candidate["finishMessage"]) ?? "the arguments are no object";
      const failure = badAnswer(`The upstream's model made a call that is malformed: ${words.slice(0, 1000)}`);
      return this.fail({ ...failure, isForeign: true });
    }
    const reason = trueFinishReason({
      received: read.reason === "failed" ? "stop" : read.reason,
      calls: open.calls,
      sawLegacyCall: false,
      hasText: open.hasText,
      callsInText: this.#options.callsInText ?? false,
      legacyFunctions: this.#options.legacyFunctions,
      isOpenAi: false,
    });
    this.#finish(index, reason ?? "stop");
  }

  #finish(index: number, reason: NonNullable<ReturnType<typeof trueFinishReason>>): void {
    const open = this.#candidates.get(index);
    if (open) open.isFinished = true;
    this.#finishedCandidates++;
    this.out.push({ type: "finish", choice: index, reason });
  }

  #part(part: JsonObject, choice: number, open: OpenCandidate, logprobs: readonly TokenLogprob[]): void {
    const { text, thought, thoughtSignature, functionCall, executableCode, codeExecutionResult } = part;
    const signature = nonEmpty(thoughtSignature);
    if (typeof text === "string" && thought === true) return this.#thought(text, signature, choice, open);
    if (isObject(functionCall)) return this.#call(functionCall, signature, choice, open);
    this.#endReasoning(choice, open);
    if (typeof text === "string") {
      open.hasText ||= /\S/.test(text);
      if (text !== "" || logprobs.length > 0)
        this.add({ type: "text-delta", choice, text, ...(logprobs.length > 0 && { logprobs }) });
    } else if (isObject(executableCode)) return this.#code(executableCode, part, choice, open);
    else if (isObject(codeExecutionResult)) return this.#output(codeExecutionResult, part, choice, open);
    else if (Object.keys(part).some((name) => name !== "thoughtSignature" && name !== "thought"))
      return void this.out.push({ type: "extra", choice, place: "item", dialect: "gemini", value: part });
    if (signature === undefined) return;
    // The signature of a text ends it.
    this.out.push({ type: "part-start", choice, kind: "reasoning" });
    this.#endReasoning(choice, Object.assign(open, { isReasoning: true }), signature);
  }

  #thought(text: string, signature: string | undefined, choice: number, open: OpenCandidate): void {
    if (!open.isReasoning) this.out.push({ type: "part-start", choice, kind: "reasoning" });
    open.isReasoning = true;
    if (text !== "") this.add({ type: "reasoning-delta", choice, text });
    if (signature !== undefined) this.#endReasoning(choice, open, signature);
  }

  #endReasoning(choice: number, open: OpenCandidate, signature?: string): void {
    if (!open.isReasoning) return;
    open.isReasoning = false;
    const state = signature === undefined ? undefined : ({ kind: "part", value: signature, ...this.#maker } as const);
    this.out.push({ type: "part-end", choice, ...(state && { state }) });
  }

  get #maker(): { readonly source?: string } {
    const { source } = this.#options;
    return source === undefined ? {} : { source };
  }

  #call({ id, name, args }: JsonObject, signature: string | undefined, choice: number, open: OpenCandidate): void {
    this.#endReasoning(choice, open);
    const called = nonEmpty(name);
    if (called === undefined) return this.repairs.note("nameless-call");
    const index = open.calls++;
    const state = signature === undefined ? undefined : callState(signature, this.#options.source);
    const text = isObject(args) ? JSON.stringify(args) : typeof args === "string" && args !== "" ? args : "{}";
    const isWhole = isObject(args) || args === undefined || args === null;
    if (!isWhole) this.repairs.note("call-arguments");
    this.out.push(
      { type: "tool-call-start", choice, index, id: this.#idOf(id), name: called, ...(state && { state }) },
      { type: "tool-call-delta", choice, index, arguments: text },
      {
        type: "tool-call-end",
        choice,
        index,
        ...(isWhole ? { status: "succeeded" } : { status: "failed", raw: text }),
      },
    );
  }

  /** Before Gemini 3, calls have no ids. */
  #idOf(given: unknown): string {
    const id = nonEmpty(given);
    if (id !== undefined && !this.#takenIds.has(id)) {
      this.#takenIds.add(id);
      return id;
    }
    if (id !== undefined) this.repairs.note("call-id");
    return distinctId(this.#options.newCallId, this.#takenIds);
  }

  #code(code: JsonObject, part: JsonObject, choice: number, open: OpenCandidate): void {
    const id = nonEmpty(code["id"]) ?? `code_${choice}_${open.codes}`;
    const native = { dialect: "gemini", value: part };
    const name = "code_execution";
    this.out.push(
      { type: "hosted-call-start", choice, id, kind: "code_interpreter", tool: name, name, native },
      { type: "hosted-call-delta", choice, id, arguments: JSON.stringify({ code: scalarText(code["code"]) }) },
      { type: "hosted-call-end", choice, id },
    );
  }

  #output({ id, output, outcome }: JsonObject, part: JsonObject, choice: number, open: OpenCandidate): void {
    const name = "code_execution";
    const returnCode = outcome === "OUTCOME_OK" || outcome === undefined ? 0 : 1;
    this.out.push({
      type: "hosted-result",
      choice,
      id: nonEmpty(id) ?? `code_${choice}_${open.codes++}`,
      kind: "code_interpreter",
      tool: name,
      name,
      result: { kind: "code", stdout: scalarText(output), stderr: "", returnCode },
      native: { dialect: "gemini", value: part },
    });
  }

  /** The pages that an answer is grounded in, as citations for clients of other APIs. */
  #sources(grounding: unknown, choice: number): void {
    const chunks =
      isObject(grounding) && Array.isArray(grounding["groundingChunks"]) ? grounding["groundingChunks"] : [];
    for (const chunk of chunks as unknown[]) {
      const web = isObject(chunk) && isObject(chunk["web"]) ? chunk["web"] : {};
      const [url, title] = [nonEmpty(web["uri"]), nonEmpty(web["title"])];
      if (url === undefined) continue;
      this.out.push({ type: "annotation", choice, annotation: { url, ...(title !== undefined && { title }) } });
    }
  }

  #usageEvent(): void {
    const usage = this.#usage && readUsageMetadata(this.#usage);
    if (usage) this.out.push({ type: "usage", usage });
    this.#usage = undefined;
  }
}

/**
 * The tokens of thoughts, and those of prompts that tools have made, are counted apart. Source:
 * https://ai.google.dev/api/generate-content#UsageMetadata.
 */
function readUsageMetadata(usage: JsonObject): Usage | undefined {
  const count = (name: string): number => {
    const value = usage[name];
    return typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.trunc(value) : 0;
  };
  const promptTokens = count("promptTokenCount") + count("toolUsePromptTokenCount");
  const thoughts = count("thoughtsTokenCount");
  const completionTokens = count("candidatesTokenCount") + thoughts;
  if (promptTokens + completionTokens === 0) return undefined;
  const cached = count("cachedContentTokenCount");
  return {
    promptTokens,
    completionTokens,
    ...(cached > 0 && { promptDetails: { cached_tokens: cached } }),
    ...(thoughts > 0 && { completionDetails: { reasoning_tokens: thoughts } }),
  };
}

function logprobsOf(result: unknown): TokenLogprob[] {
  if (!isObject(result) || !Array.isArray(result["chosenCandidates"])) return [];
  const tops: readonly unknown[] = Array.isArray(result["topCandidates"]) ? result["topCandidates"] : [];
  const tokenOf = (value: unknown) => {
    const { token, logProbability } = isObject(value) ? value : {};
    const logprob = typeof logProbability === "number" ? logProbability : null;
    const text = scalarText(token);
    return { token: text, logprob, bytes: [...new TextEncoder().encode(text)] };
  };
  return (result["chosenCandidates"] as readonly unknown[]).map((chosen, at) => {
    const top = tops[at];
    const others = isObject(top) && Array.isArray(top["candidates"]) ? (top["candidates"] as readonly unknown[]) : [];
    return { ...tokenOf(chosen), top: others.map(tokenOf) };
  });
}
