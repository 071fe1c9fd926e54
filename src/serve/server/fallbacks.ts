import type { Engine, ModelInfo } from "../../wire/core/engine.ts";
import { type GenerationEnd, type GenerationEvent, type GenerationFailure, isVisible } from "../../wire/core/events.ts";
import type { FallbackReason } from "../../wire/core/failure.ts";
import type { GenerationObserver } from "../../wire/core/generation-observer.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { Fallbacks, ModelView, ServedModel } from "./model-directory.ts";

/** Not by default: a prompt that is too long, and one that a filter refuses, are the client's to change. */
const defaultReasons: readonly FallbackReason[] = ["connection", "timeout", "server-error", "rate-limit", "not-found"];

/** A model that may answer instead. */
interface Candidate {
  readonly name: string;
  readonly engine: GeneratingEngine;
  readonly engineModel: string;
  /** Why it cannot answer the request, as a sentence; null: it may. */
  readonly mismatch: string | null;
}

type GeneratingEngine = Pick<Engine, "generate">;
type Batch = readonly GenerationEvent[];
type FailedEnd = Extract<GenerationEnd, { readonly failure: GenerationFailure }>;

/**
 * Returns an engine that asks a model, and then its fallbacks in order, until one of them emits an event that is not a failure. From then on
 * no other model is asked, so no text is sent twice. `onFallback` is called when a fallback is asked, with its name and the failure before.
 */
export function withFallbacks(
  { from, engineModel }: ServedModel,
  directory: ModelView,
  request: GenerationRequest,
  onFallback: (name: string, reason: FallbackReason) => void,
): GeneratingEngine {
  const { fallbacks, engine } = from;
  const names = fallbacks && fallbackNames(fallbacks, engineModel);
  if (!names || names.length === 0) return engine;
  const reasons: ReadonlySet<string> = new Set(fallbacks.reasons ?? defaultReasons);
  const candidates = names.flatMap((name): Candidate[] => {
    const found = directory.find(name);
    if (found) {
      const mismatch = mismatchOf(request, found.info);
      return [{ name, engine: found.from.engine, engineModel: found.engineModel, mismatch }];
    }
    // An upstream may have models that it is not asked to list. A key may not use every served model.
    const isServed = directory.isServed(name);
    return isServed ? [] : [{ name, engine, engineModel: name, mismatch: null }];
  });
  return {
    generate: (asked, observer) => new FallbackRun(engine, asked, observer, candidates, reasons, onFallback),
  };
}

function fallbackNames({ models }: Fallbacks, model: string): readonly string[] {
  if (isList(models)) return models.filter((name) => name !== model);
  return Object.hasOwn(models, model) ? (models[model] ?? []) : [];
}

function isList(models: Fallbacks["models"]): models is readonly string[] {
  return Array.isArray(models);
}

/** Why a model cannot answer a request; null if nothing is known that prevents it. */
function mismatchOf({ prompt }: GenerationRequest, { endpoints, takesImages }: ModelInfo): string | null {
  const endpoint = prompt.kind === "chat" ? "chat" : "completions";
  if (!endpoints.includes(endpoint)) return `it does not support ${endpoint}`;
  if (takesImages !== false || prompt.kind !== "chat") return null;
  const hasImage = prompt.messages.some(
    ({ content }) => Array.isArray(content) && content.some(({ type }: { readonly type: string }) => type === "image"),
  );
  return hasImage ? "it takes no images" : null;
}

/** One generation with fallbacks. */
class FallbackRun implements AsyncIterableIterator<Batch> {
  readonly #request: GenerationRequest;
  readonly #observer: GenerationObserver | undefined;
  readonly #candidates: readonly Candidate[];
  readonly #reasons: ReadonlySet<string>;
  readonly #onFallback: (name: string, reason: FallbackReason) => void;
  #iterator: AsyncIterator<Batch>;
  #next = 0;
  /** The name of the fallback that is asked. */
  #asked: string | undefined;
  #first: FailedEnd | undefined;
  /** Why fallbacks are asked. */
  #reason: FallbackReason | undefined;
  /** Sentences on the fallbacks that did not answer. */
  readonly #notes: string[] = [];
  #committed = false;
  #returned = false;

  constructor(
    engine: GeneratingEngine,
    request: GenerationRequest,
    observer: GenerationObserver | undefined,
    candidates: readonly Candidate[],
    reasons: ReadonlySet<string>,
    onFallback: (name: string, reason: FallbackReason) => void,
  ) {
    this.#request = request;
    this.#observer = observer;
    this.#candidates = candidates;
    this.#reasons = reasons;
    this.#onFallback = onFallback;
    this.#iterator = engine.generate(request, observer)[Symbol.asyncIterator]();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Batch, undefined>> {
    while (!this.#committed) {
      const step = await this.#iterator.next();
      if (this.#returned) return over;
      if (step.done === true) return over;
      const reason = reasonOf(step.value);
      const end = failedEnd(step.value);
      if (reason === null && (!end || this.#asked === undefined)) {
        this.#committed = true;
        return step;
      }
      if (end && this.#asked !== undefined)
        this.#notes.push(`The fallback '${this.#asked}' failed, too: ${end.failure.message}`);
      else if (end) this.#first = end;
      if (this.#asked === undefined && reason !== null && this.#reasons.has(reason)) this.#reason = reason;
      const other = this.#reason && this.#nextCandidate();
      if (!other || !this.#reason) {
        this.#committed = true;
        return { done: false, value: this.#lastBatch(step.value) };
      }
      void this.#iterator.return?.();
      this.#asked = other.name;
      this.#onFallback(other.name, this.#reason);
      const request = { ...this.#request, model: other.engineModel };
      this.#iterator = other.engine.generate(request, this.#observer)[Symbol.asyncIterator]();
    }
    const step = await this.#iterator.next();
    return step.done === true ? over : step;
  }

  async return(): Promise<IteratorResult<Batch, undefined>> {
    this.#returned = true;
    await this.#iterator.return?.();
    return over;
  }

  #nextCandidate(): Candidate | undefined {
    for (;;) {
      const candidate = this.#candidates[this.#next++];
      if (!candidate || candidate.mismatch === null) return candidate;
      this.#notes.push(`The fallback '${candidate.name}' was not asked: ${candidate.mismatch}.`);
    }
  }

  /** The failure of the first model, with sentences on its fallbacks. Without one, the last answer. */
  #lastBatch(batch: Batch): Batch {
    const end = this.#first;
    if (!end || this.#notes.length === 0) return batch;
    const { failure } = end;
    const message = [failure.message, ...this.#notes].join(" ").slice(0, maxMessage);
    return [
      { type: "end", end: { ...end, failure: { ...failure, message, ...(this.#asked !== undefined && foreign) } } },
    ];
  }
}

const over: IteratorReturnResult<undefined> = { done: true, value: undefined };
/** The messages of fallbacks may be the source's. */
const foreign = { isForeign: true } as const;
/** In characters: as for the error of a source. */
const maxMessage = 4000;

/** The failed end of a batch without output. */
function failedEnd(batch: Batch): FailedEnd | undefined {
  const last = batch.at(-1);
  return last?.type === "end" && "failure" in last.end && !batch.some(isVisible) ? last.end : undefined;
}

/**
 * The kind of failure of a first batch; null if it has output, did not fail, or failed for a reason that another model shares. A filter of
 * content also ends an answer without output.
 */
function reasonOf(batch: Batch): FallbackReason | null {
  const end = failedEnd(batch);
  if (!end) {
    const isFiltered = batch.some((event) => event.type === "finish" && event.reason === "content-filter");
    const isEmpty = !batch.some((event) => isVisible(event) && event.type !== "finish");
    return isFiltered && isEmpty ? "content-filter" : null;
  }
  const { kind, status, code, cause } = end.failure;
  if (code === "content_filter" || code === "content_policy_violation") return "content-filter";
  if (kind === "context-overflow") return "context-length";
  if (kind === "timeout" || status === 504 || status === 408) return "timeout";
  if (status === 429) return "rate-limit";
  if (status === 404 || code === "model_not_found") return "not-found";
  if (status < 500 || status === 501) return null;
  return cause === undefined ? "server-error" : "connection";
}
