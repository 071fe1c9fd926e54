import type { Engine, ModelInfo } from "../../wire/core/engine.ts";
import { type GenerationEnd, type GenerationEvent, type GenerationFailure, isVisible } from "../../wire/core/events.ts";
import type { FallbackReason } from "../../wire/core/failure.ts";
import type { GenerationObserver } from "../../wire/core/generation-observer.ts";
import { Relay } from "../../wire/core/relay.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { Fallbacks, ModelView, ServedModel } from "./model-directory.ts";

/** Not by default: a prompt that is too long, and one that a filter refuses, are the client's to change. */
const defaultReasons: readonly FallbackReason[] = ["connection", "timeout", "server-error", "rate-limit", "not-found"];

/** A model that may answer instead. */
interface Candidate {
  readonly name: string;
  readonly engine: Engine;
  readonly engineModel: string;
  /** Why it cannot answer the request, as a sentence; null: it may. */
  readonly mismatch: string | null;
}

/** Starts a generation: that of an engine, or of a relay over engines. */
export type Generate = Engine["generate"];

type Batch = readonly GenerationEvent[];
type FailedEnd = Extract<GenerationEnd, { readonly failure: GenerationFailure }>;

/**
 * Asks a model, and then its fallbacks in order, until one of them emits an event that is not a failure. From then on no other model is
 * asked, so no text is sent twice. `onFallback` is called when a fallback is asked, with its name and the failure before.
 */
export function withFallbacks(
  { from, engineModel }: ServedModel,
  directory: ModelView,
  onFallback: (name: string, reason: FallbackReason) => void,
): Generate {
  const { fallbacks, engine } = from;
  const names = fallbacks && fallbackNames(fallbacks, engineModel);
  if (!names || names.length === 0) return (request, observer) => engine.generate(request, observer);
  const reasons: ReadonlySet<string> = new Set(fallbacks.reasons ?? defaultReasons);
  const ask = async (relay: Relay, request: GenerationRequest, observer?: GenerationObserver): Promise<Batch> => {
    const first = await relay.ask(() => engine.generate(request, observer));
    const reason = reasonOf(first);
    if (reason === null || !reasons.has(reason)) return first;
    let last = first;
    let hasFallback = false;
    const notes: string[] = [];
    for (const { name, engine: other, engineModel: model, mismatch } of candidatesFor(request)) {
      if (mismatch !== null) {
        notes.push(`The fallback '${name}' was not asked: ${mismatch}.`);
        continue;
      }
      onFallback(name, reason);
      hasFallback = true;
      last = await relay.ask(() => other.generate({ ...request, model }, observer));
      const failed = failedEnd(last);
      if (failed) notes.push(`The fallback '${name}' failed, too: ${failed.failure.message}`);
      else if (reasonOf(last) === null) return last;
    }
    return withNotes(first, last, notes, hasFallback);
  };
  const candidatesFor = (request: GenerationRequest): Candidate[] =>
    names.flatMap((name): Candidate[] => {
      const found = directory.find(name);
      if (found) {
        const mismatch = mismatchOf(request, found.info);
        return [{ name, engine: found.from.engine, engineModel: found.engineModel, mismatch }];
      }
      // An upstream may have models that it is not asked to list. A key may not use every served model.
      const isServed = directory.isServed(name);
      return isServed ? [] : [{ name, engine, engineModel: name, mismatch: null }];
    });
  return (request, observer) => new Relay((relay) => ask(relay, request, observer));
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

/**
 * The failure of the first model, with sentences on its fallbacks. If the first model did not fail, but a filter has ended its answer: the
 * last answer.
 */
function withNotes(first: Batch, last: Batch, notes: readonly string[], hasFallback: boolean): Batch {
  const end = failedEnd(first);
  if (!end || notes.length === 0) return last;
  const { failure } = end;
  const message = [failure.message, ...notes].join(" ").slice(0, maxMessage);
  return [{ type: "end", end: { ...end, failure: { ...failure, message, ...(hasFallback && foreign) } } }];
}

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
