import type { BatchBeginning, BatchForm, BatchLine } from "../../../wire/apis/batches/form.ts";
import { invalidLine } from "../../../wire/apis/batches/openai.ts";
import type { BatchError } from "../../../wire/apis/batches/schema.ts";
import { BodyCounter, bodyLimits } from "../../../wire/apis/body-counter.ts";
import { jsonChunks } from "../../../wire/core/json-chunks.ts";
import type { JsonObject } from "../../../wire/core/json.ts";
import { StepCounter } from "../../../wire/core/steps.ts";
import type { Steps } from "../../../wire/core/steps.ts";
import { IncrementalJson } from "../incremental-json.ts";

/** The place of a request in the text of a batch: its line is parsed again when it runs. */
export interface InputLine {
  readonly customId: string;
  readonly from: number;
  readonly until: number;
}

/** The requests of a batch, or what is wrong with them. */
export type BatchInput =
  | { readonly lines: readonly InputLine[]; readonly model: string | undefined }
  | { readonly errors: readonly BatchError[] };

/** The most errors that a batch shows. */
const maxErrors = 100;
/** The characters of a prompt by which requests are ordered. */
const comparedCharacters = 512;
/** Parsing this many characters takes about a millisecond. */
const charactersPerStep = 64 * 1024;

/**
 * Reads the requests of a batch from JSONL, and orders them by the beginnings of their prompts, so that requests with the same beginning run
 * one after the other and use the model's cache. Empty lines are ignored.
 */
export function* readBatchInput(text: string, batch: BatchBeginning, form: BatchForm): Steps<BatchInput> {
  const errors: BatchError[] = [];
  const known = new Set<string>();
  const found: { readonly line: InputLine; readonly prompt: string }[] = [];
  const models = new Set<unknown>();
  const counter = new StepCounter();
  let sinceStep = 0;
  let number = 0;
  for (let from = 0, next = 0; from < text.length && errors.length < maxErrors; from = next) {
    const end = text.indexOf("\n", from);
    const until = end === -1 ? text.length : end;
    next = until + 1;
    number++;
    sinceStep += until - from;
    const isStep = counter.endsStep();
    if (isStep || sinceStep > charactersPerStep) {
      sinceStep = 0;
      yield;
    }
    if (isBlank(text, from, until)) continue;
    const read = yield* readLine(text.slice(from, until), batch, form);
    if (!("customId" in read)) errors.push({ ...read, line: number });
    else if (known.has(read.customId)) errors.push({ ...duplicate(read.customId), line: number });
    else if (found.length === form.maxLines) return { errors: [tooMany(form.maxLines)] };
    else {
      known.add(read.customId);
      models.add(read.body["model"]);
      found.push({ line: { customId: read.customId, from, until }, prompt: beginningOf(read.body) });
    }
  }
  if (errors.length > 0) return { errors };
  if (found.length === 0)
    return { errors: [{ code: "empty_file", message: "The input file has no requests.", param: null, line: null }] };
  yield;
  found.sort((one, other) => (one.prompt < other.prompt ? -1 : one.prompt > other.prompt ? 1 : 0));
  const [model] = models;
  return {
    lines: found.map(({ line }) => line),
    model: models.size === 1 && typeof model === "string" ? model : undefined,
  };
}

function isBlank(text: string, from: number, until: number): boolean {
  for (let at = from; at < until; at++) if (!/\s/.test(text.charAt(at))) return false;
  return true;
}

/** Reads one line. Its limits are those of a request's body. */
export function* readLine(text: string, batch: BatchBeginning, form: BatchForm): Steps<BatchLine | BatchError> {
  try {
    return form.readLine(yield* parsed(text), batch);
  } catch {
    return invalidLine();
  }
}

function* parsed(text: string): Steps<unknown> {
  if (text.length <= bodyLimits.depth) return JSON.parse(text) as unknown;
  const bytes = new TextEncoder().encode(text);
  const counter = new BodyCounter();
  for (let at = 0; at < bytes.length; at += charactersPerStep) {
    counter.add(bytes.subarray(at, at + charactersPerStep));
    if (bytes.length > charactersPerStep) yield;
  }
  if (bytes.length <= charactersPerStep) return JSON.parse(text) as unknown;
  return yield* new IncrementalJson(bytes, charactersPerStep).read();
}

/** The model and the beginning of the prompt. */
function beginningOf({ model, instructions, system, tools, messages, input, prompt }: JsonObject): string {
  const compared = [model, tools, instructions ?? system, messages ?? input ?? prompt];
  for (const chunk of jsonChunks(compared, comparedCharacters)) return chunk.slice(0, comparedCharacters);
  return "";
}

function duplicate(id: string): BatchError {
  return {
    code: "duplicate_custom_id",
    message: `The custom_id '${id.slice(0, 100)}' is that of an earlier request. It must be unique in a batch.`,
    param: "custom_id",
  };
}

function tooMany(most: number): BatchError {
  return { code: "too_many_tasks", message: `A batch has at most ${most} requests.`, param: null, line: null };
}

/**
 * Reads the lines of results. Returns the length of those that are complete: a crash may have torn the last one, whose request runs again.
 * `found` is called with each result.
 */
export function* readResults(text: string, found: (result: JsonObject) => void): Steps<number> {
  const counter = new StepCounter();
  let from = 0;
  for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", from)) {
    found(JSON.parse(text.slice(from, end)) as JsonObject);
    from = end + 1;
    if (counter.endsStep()) yield;
  }
  return from;
}
