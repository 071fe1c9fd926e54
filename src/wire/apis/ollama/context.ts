import { FailureError } from "../../core/failure.ts";
import type { JsonObject } from "../../core/json.ts";
import { isObject } from "../../core/json.ts";

/** What is known of a model at an Ollama server. Sizes are in tokens. */
export interface OllamaModelState {
  /** The largest context that a request may ask for: the model's own, or the configuration's if that is smaller. Absent: unknown. */
  readonly maxContext?: number;
  /** The first step of context sizes; default 8192. */
  readonly firstContext?: number;
  /** A request with a smaller context would reload the model: it has this one now, or an earlier request asked for it. */
  readonly minContext: number;
  /** Whether it reasons. Absent: unknown. */
  readonly reasons?: boolean;
  /** Whether it takes images. Absent: unknown. */
  readonly sees?: boolean;
  /** It runs at another server, which sets its context. */
  readonly isRemote?: boolean;
  /** The server does not know `truncate`, and cuts a prompt that is too long. */
  readonly cutsPrompts?: boolean;
  /** The server accepts `think: "max"`. */
  readonly thinksMax?: boolean;
  readonly keepAlive?: string | number | undefined;
}

/**
 * The default of the first step of context sizes; each further one has twice the size. Ollama loads a model again for another size, and
 * loses its cache of prompts, so a conversation may change the size a few times only. Source: ollama 0.33.0 server/sched.go, `needsReload`.
 */
const firstStep = 8192;
/** The part of a context that is left for an answer, in tokens, if the request sets no limit; and the most for a request that does. */
const defaultReserve = 4096;
const reasoningReserve = 8192;
const maxReserve = 16_384;
/** What Ollama itself takes for an image. Source: server/prompt.go, `imageNumTokens`. */
const imageTokens = 768;

/**
 * Returns the `num_ctx` of a request: enough for the prompt and the answer, rounded up to a step, not less than the model has now, and not
 * more than its maximum. `requested`: what a client of Ollama's API asks for at least. undefined: the server sets it.
 *
 * Throws `FailureError` if the prompt is certainly longer than the maximum; or probably, if the server would cut it without a word.
 */
export function contextSize(
  body: JsonObject,
  maxTokens: number | undefined,
  state: OllamaModelState,
  requested?: unknown,
): number | undefined {
  const { maxContext = Number.POSITIVE_INFINITY, reasons, isRemote, cutsPrompts } = state;
  if (isRemote === true) return undefined;
  const prompt = estimatedTokens(body);
  if ((cutsPrompts === true ? prompt.likely : prompt.least) > maxContext)
    throw promptTooLong(prompt.likely, maxContext);
  const reserve = maxTokens ?? (reasons === true ? reasoningReserve : defaultReserve);
  const size = contextFor(prompt.most + Math.min(reserve, maxReserve), state);
  return typeof requested === "number" ? Math.min(Math.max(size, requested), maxContext) : size;
}

/** The context for this number of tokens; see `contextSize`. */
export function contextFor(
  tokens: number,
  { firstContext = firstStep, minContext, maxContext = Number.POSITIVE_INFINITY }: OllamaModelState,
): number {
  let size = firstContext;
  while (size < tokens && size < maxContext) size *= 2;
  return Math.min(Math.max(size, minContext), maxContext);
}

interface TokenEstimate {
  readonly least: number;
  readonly likely: number;
  readonly most: number;
}

/**
 * Estimates the tokens of a prompt by its characters: English and code have 3 to 5 ASCII characters per token, and tables and deeply
 * indented code up to 12. Other characters are tokens of their own in most tokenizers, and up to 4 per token in some languages.
 */
function estimatedTokens({ messages, tools, prompt, suffix }: JsonObject): TokenEstimate {
  const counts: Counts = { ascii: 0, other: 0, images: 0 };
  for (const part of [messages, tools, prompt, suffix]) countText(part, counts, "");
  const { ascii, other, images } = counts;
  const ofImages = images * imageTokens;
  return {
    least: Math.floor(ascii / 12 + other / 4),
    likely: Math.floor(ascii / 4 + other / 2) + ofImages,
    most: Math.ceil(ascii / 3 + other) + ofImages,
  };
}

interface Counts {
  ascii: number;
  other: number;
  images: number;
}

/** Member names count, too: templates write tools and calls as JSON. */
function countText(value: unknown, counts: Counts, name: string): void {
  if (typeof value === "string") countCharacters(value, counts);
  else if (name === "images" && Array.isArray(value)) counts.images += value.length;
  else if (Array.isArray(value)) for (const item of value) countText(item, counts, "");
  else if (isObject(value)) {
    for (const [key, member] of Object.entries(value)) {
      counts.ascii += key.length + 4;
      countText(member, counts, key);
    }
  } else counts.ascii += 4;
}

function countCharacters(text: string, counts: Counts): void {
  let other = 0;
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 127) other++;
  counts.ascii += text.length - other;
  counts.other += other;
}

function promptTooLong(tokens: number, maxContext: number): FailureError {
  return new FailureError({
    kind: "context-overflow",
    status: 400,
    message: `The prompt has about ${tokens} tokens, and the model's context is ${maxContext} tokens: shorten the conversation, or use a model with a longer context.`,
    param: null,
    code: "context_length_exceeded",
    tokens: { asked: tokens, most: maxContext },
  });
}
