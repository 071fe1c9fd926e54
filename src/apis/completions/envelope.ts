import type { SourceIdentity } from "../../core/events.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import { answerIdentity } from "../identity.ts";
import type { CompletionForm } from "./form.ts";

/** What every chunk of one completions stream has around its choices, prepared once. */
export class CompletionEnvelope {
  readonly #modelBehind: boolean;
  readonly #start: string;
  readonly #model: string;
  readonly #usage: string;

  constructor(context: ChoicesContext, form: CompletionForm, source: SourceIdentity | undefined) {
    const { id, created, model, systemFingerprint } = answerIdentity(context, "cmpl-", source);
    const modelText = `"model":${JSON.stringify(model)}`;
    this.#modelBehind = form.modelBehindChoices;
    this.#model = modelText;
    const { includeUsage, includeRunningUsage } = context.asked;
    this.#usage = includeUsage && form.nullUsage && !includeRunningUsage ? ',"usage":null' : "";
    this.#start =
      `data: {"id":${JSON.stringify(id)},"object":"text_completion","created":${created},` +
      (form.modelBehindChoices ? "" : `${modelText},`) +
      (form.systemFingerprint ? `"system_fingerprint":${JSON.stringify(systemFingerprint)},` : "");
  }

  /** One element of `choices`. `text` and `logprobs` are JSON; `extras` begins with a comma or is empty. */
  choice(index: number, text: string, logprobs: string, finish: string | null, extras: string): string {
    const reason = finish === null ? "null" : `"${finish}"`;
    return `{"text":${text},"index":${index},"logprobs":${logprobs},"finish_reason":${reason}${extras}}`;
  }

  /** A chunk. `choices` is the array's inside; `extras` begins with a comma or is empty. */
  chunk(choices: string, extras: string): string {
    const model = this.#modelBehind ? `,${this.#model}` : "";
    return `${this.#start}"choices":[${choices}]${model}${extras}${this.#usage}}\n\n`;
  }

  /** The chunk without choices at the end. `usage`: JSON, or "" for none. */
  closingChunk(usage: string, extras: string): string {
    const shown = usage === "" ? "" : `,"usage":${usage}`;
    if (!this.#modelBehind) return `${this.#start}"choices":[]${shown}${extras}}\n\n`;
    return `${this.#start}${this.#model}${shown},"choices":[]${extras}}\n\n`;
  }
}
