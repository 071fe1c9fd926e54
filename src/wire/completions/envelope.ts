import type { SourceIdentity } from "../../generation/event.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import { answerIdentity } from "../identity.ts";

/**
 * What every chunk of one completions stream has around its choices, prepared once. Profile `openai` has the model behind the
 * choices, and no fingerprint (wire.md section 4); `lean` has both in front.
 */
export class CompletionEnvelope {
  readonly #isLean: boolean;
  readonly #start: string;
  readonly #model: string;
  readonly #usage: string;

  constructor(context: ChoicesContext, source: SourceIdentity | undefined) {
    const { profile, asked, capture } = context;
    const { id, created, model, systemFingerprint } = answerIdentity(context, "cmpl-", source);
    this.#isLean = profile.name === "lean";
    this.#model = `"model":${JSON.stringify(model)}`;
    this.#usage = (capture?.usage ?? asked.includeUsage) ? ',"usage":null' : "";
    this.#start =
      `data: {"id":${JSON.stringify(id)},"object":"text_completion","created":${created},` +
      (this.#isLean ? `${this.#model},"system_fingerprint":${JSON.stringify(systemFingerprint)},` : "");
  }

  /** A chunk with one choice. `extras` begins with a comma or is empty. */
  chunk(choice: string, extras: string): string {
    const model = this.#isLean ? "" : `,${this.#model}`;
    return `${this.#start}"choices":[${choice}]${model}${extras}${this.#usage}}\n\n`;
  }

  /** The chunk without choices at the end, whose order OpenAI changes. `usage`: JSON, or "" for none. */
  closingChunk(usage: string, extras: string): string {
    const shown = usage === "" ? "" : `"usage":${usage}`;
    if (this.#isLean) return `${this.#start}"choices":[]${shown && `,${shown}`}${extras}}\n\n`;
    return `${this.#start}${this.#model}${shown && `,${shown}`},"choices":[]${extras}}\n\n`;
  }
}
