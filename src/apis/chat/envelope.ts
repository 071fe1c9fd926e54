import type { SourceIdentity } from "../../core/events.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import { answerIdentity, shownTier } from "../identity.ts";
import { obfuscate } from "../obfuscation.ts";
import type { ChatForm } from "./form.ts";
import { showsLogprobsKey } from "./logprobs-key.ts";

/** What every chunk of one chat stream has around its choices, prepared once. The order of members is OpenAI's since 2025-08. */
export class ChatEnvelope {
  /** Each chunk ends with random characters that depend on its length. */
  readonly obfuscated: boolean;
  readonly #random: () => number;
  /** `{"id":…` up to where `choices` stands. */
  readonly #start: string;
  /** `"usage":null`, where the client asked for usage. */
  readonly #usage: string | null;
  readonly #showsLogprobs: boolean;

  constructor(context: ChoicesContext, form: ChatForm, source: SourceIdentity | undefined) {
    const { asked, random } = context;
    const { id, created, model, systemFingerprint } = answerIdentity(context, "chatcmpl-", source);
    const serviceTier = shownTier(form.serviceTier, context.settings, source);
    this.#random = random;
    this.obfuscated = asked.includeObfuscation ?? form.obfuscates;
    this.#usage = asked.includeUsage && form.nullUsage && !asked.includeRunningUsage ? '"usage":null' : null;
    this.#showsLogprobs = showsLogprobsKey(form, context);
    this.#start =
      `{"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(model)},` +
      (serviceTier === undefined ? "" : `"service_tier":${JSON.stringify(serviceTier)},`) +
      (form.systemFingerprint ? `"system_fingerprint":${JSON.stringify(systemFingerprint)},` : "");
  }

  /** One element of `choices`. `delta`, `logprobs` and `finish` are JSON; `extras` begins with a comma or is empty. */
  choice(index: number, delta: string, logprobs: string, finish: string, extras: string): string {
    const shown = this.#showsLogprobs ? `,"logprobs":${logprobs}` : "";
    return `{"index":${index},"delta":${delta}${shown},"finish_reason":${finish}${extras}}`;
  }

  /** A chunk: `choices` is the array's inside, `extras` are members behind it. */
  chunk(choices: string, extras: string): string {
    const usage = this.#usage === null ? "" : `,${this.#usage}`;
    return this.#event(`${this.#start}"choices":[${choices}]${extras}${usage}`);
  }

  /** The same with `usage` before `choices`, as OpenAI writes the calls of a stream with several. */
  usageFirstChunk(choices: string): string {
    const usage = this.#usage === null ? "" : `${this.#usage},`;
    return this.#event(`${this.#start}${usage}"choices":[${choices}]`);
  }

  /** The chunk without choices at the end. `members` begins with a comma. */
  closingChunk(members: string): string {
    return this.#event(`${this.#start}"choices":[]${members}`);
  }

  /** `json`: an object without its closing brace. */
  #event(json: string): string {
    return `data: ${this.obfuscated ? obfuscate(json, this.#random) : `${json}}`}\n\n`;
  }
}
