import type { ChoicesContext } from "../choices-answer.ts";
import type { ChatForm } from "./form.ts";

/**
 * Models whose choices have no `logprobs` key in OpenAI's own answers: reasoning models, audio and search models (recordings of 2024
 * to 2026 without a counterexample; those of gpt-3.5, 4, 4o and 4.1 always have it).
 */
const withoutKey = /^(?:o\d(?:-|$)|gpt-5|gpt-audio)|-search-preview/;

/** Whether OpenAI's answers of a model have the key; by the model's id. */
export function hasLogprobsKey(model: string): boolean {
  return !withoutKey.test(model);
}

/** Whether the choices of an answer have a `logprobs` member. */
export function showsLogprobsKey({ logprobsKey }: ChatForm, { asked, settings, model }: ChoicesContext): boolean {
  if (logprobsKey !== "by-model") return logprobsKey;
  return asked.logprobs || (settings.logprobsKey ?? hasLogprobsKey(model));
}
