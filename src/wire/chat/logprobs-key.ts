import type { ChoicesContext } from "../choices-answer.ts";

/**
 * Models whose choices have no `logprobs` key in OpenAI's own answers: reasoning models, audio and search models (wire.md section 2.2:
 * no counterexample; those of gpt-3.5, 4, 4o and 4.1 always have it).
 */
const withoutKey = /^(?:o\d(?:-|$)|gpt-5|gpt-audio)|-search-preview/;

/** Whether OpenAI's answers of a model have the key; by the model's id. */
export function hasLogprobsKey(model: string): boolean {
  return !withoutKey.test(model);
}

/** Whether the choices of an answer have a `logprobs` member: always in profile `lean`, a capture's as it had, else by model class. */
export function showsLogprobsKey({ profile, asked, settings, capture, model }: ChoicesContext): boolean {
  if (profile.name === "lean") return true;
  return capture?.logprobs ?? (asked.logprobs || (settings.logprobsKey ?? hasLogprobsKey(model)));
}
