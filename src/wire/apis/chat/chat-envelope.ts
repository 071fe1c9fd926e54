import type { SourceIdentity } from "../../core/events.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import { jsonString } from "../json-text.ts";
import { type ChatForm, showsLogprobsKey } from "./form.ts";
import { answerIdentity, shownTier } from "../identity.ts";
import { randomBase62 } from "../ids.ts";

/** A chunk without one string, and without its obfuscation: `before`, the JSON of the string, `after`. */
export interface ChunkTemplate {
  readonly before: string;
  readonly after: string;
  /** The length of the chunk's JSON without that string, as `obfuscate` counts. */
  readonly length: number;
}

/**
 * The members that every chunk of a stream repeats, prepared once. Their order is that of `chatChunk` in schema.ts, which a test compares
 * with these templates.
 */
export class ChatEnvelope {
  /** Each chunk ends with random characters that depend on its length. */
  readonly #obfuscated: boolean;
  readonly #random: () => number;
  /** `{"id":…,`: the members before `choices`. */
  readonly #start: string;
  /** `"usage":null` if the request asks for usage. */
  readonly #usage: string | null;
  readonly #showsLogprobs: boolean;

  constructor(context: ChoicesContext, form: ChatForm, source: SourceIdentity | undefined) {
    const { requested: asked, random } = context;
    const { id, created, model, systemFingerprint } = answerIdentity(context, "chatcmpl-", source);
    const serviceTier = shownTier(form.serviceTier, context, source);
    this.#random = random;
    this.#obfuscated = asked.includeObfuscation ?? form.obfuscates;
    this.#usage = asked.includeUsage && !asked.includeRunningUsage ? '"usage":null' : null;
    this.#showsLogprobs = showsLogprobsKey(form, context);
    this.#start =
      `{"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(model)},` +
      (serviceTier === undefined ? "" : `"service_tier":${JSON.stringify(serviceTier)},`) +
      `"system_fingerprint":${JSON.stringify(systemFingerprint)},`;
  }

  /** Writes one element of `choices`. `delta`, `logprobs` and `finish` are JSON; `extras` begins with a comma or is empty. */
  choice(index: number, delta: string, logprobs: string, finish: string, extras: string): string {
    const shown = this.#showsLogprobs ? `,"logprobs":${logprobs}` : "";
    return `{"index":${index},"delta":${delta}${shown},"finish_reason":${finish}${extras}}`;
  }

  /** Writes a chunk. `choices`: the elements of the array; `extras`: members after it, each with a comma before it. */
  chunk(choices: string, extras: string): string {
    const usage = this.#usage === null ? "" : `,${this.#usage}`;
    return this.#event(`${this.#start}"choices":[${choices}]${extras}${usage}`);
  }

  /** Writes a chunk with `usage` before `choices`, as OpenAI does in streams of several calls. */
  usageFirstChunk(choices: string): string {
    const usage = this.#usage === null ? "" : `${this.#usage},`;
    return this.#event(`${this.#start}${usage}"choices":[${choices}]`);
  }

  /** Writes the last chunk, which has no choices. `members` begins with a comma. */
  closingChunk(members: string): string {
    return this.#event(`${this.#start}"choices":[]${members}`);
  }

  /** Returns the template of a written chunk. A line feed is in the place of its string. */
  template(chunk: string): ChunkTemplate {
    const place = chunk.indexOf("\n");
    const end = this.#obfuscated ? chunk.lastIndexOf(obfuscationStart) : chunk.length;
    const before = chunk.slice(0, place);
    const after = chunk.slice(place + 1, end);
    return { before, after, length: characters(before) - eventStart.length + characters(after) };
  }

  /** Writes a chunk of a template. */
  fill({ before, after, length }: ChunkTemplate, text: string): string {
    const json = jsonString(text);
    if (!this.#obfuscated) return before + json + after;
    return `${before}${json}${after}${obfuscation(length + characters(json), this.#random)}\n\n`;
  }

  /** `json`: an object without its closing brace. */
  #event(json: string): string {
    return `${eventStart}${this.#obfuscated ? obfuscate(json, this.#random) : `${json}}`}\n\n`;
  }
}

const eventStart = "data: ";
const obfuscationStart = ',"obfuscation":"';

/**
 * Adds `obfuscation`, the last member of a chunk, which hides the length of a token from an observer of the encrypted stream.
 *
 * The rule (17,107 of 17,112 chunks recorded since 2025-08): `[0-9A-Za-z]`, as long as makes the length of the whole JSON
 * 1 modulo 16. The length counts characters; those outside the basic plane count as one (no recording has any).
 *
 * `json`: a compact object without its closing brace. Returns the whole object.
 */
export function obfuscate(json: string, random: () => number): string {
  return json + obfuscation(characters(json), random);
}

/** The last member of a chunk, and its closing brace. `length`: of the JSON before it. */
function obfuscation(length: number, random: () => number): string {
  // The length that counts has one brace more.
  const padding = (16 - ((length + 1) % 16)) % 16;
  return `${obfuscationStart}${randomBase62(padding, random)}"}`;
}

function characters(text: string): number {
  const pairs = text.match(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g);
  return text.length - (pairs?.length ?? 0);
}
