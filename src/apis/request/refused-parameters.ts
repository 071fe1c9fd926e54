import { z } from "zod";
import { refused } from "./parameter.ts";
import type { Parameter } from "./parameter.ts";
import { unsupportedParameter, unsupportedValue } from "./refusals.ts";
import { anyObject, list } from "./shapes.ts";

/** OpenAI's parameters that would change the answer and cannot be honoured. */
export const refusedParameters: readonly Parameter[] = [
  refused(
    "modalities",
    "openai",
    {
      endpoints: ["chat"],
      note: '`["text"]` is accepted; audio output is refused.',
      shape: list(z.enum(["text", "audio"]), { phrase: "an array of strings", most: 16 }),
    },
    (value) => {
      if (value.includes("audio")) throw unsupportedValue("modalities", "audio");
    },
  ),
  refuseAlways("audio", "Audio output."),
  refuseAlways("web_search_options", "No web search."),
  refuseAlways("moderation", "No moderation of prompts and answers."),
];

/**
 * Samplers that other engines have. A value that turns the sampler off is accepted: some programs send
 * every known sampler with every request.
 */
export const refusedSamplers: readonly Parameter[] = [
  sampler("typical_p", 1),
  sampler("typical", 1),
  sampler("tfs_z", 1),
  sampler("tfs", 1),
  sampler("top_a", 0),
  sampler("top_n_sigma", 0, -1),
  sampler("nsigma", 0, -1),
  sampler("mirostat", 0, false),
  sampler("mirostat_mode", 0),
  sampler("smoothing_factor", 0),
  sampler("dynatemp_range", 0),
  sampler("dynamic_temperature", false),
  sampler("epsilon_cutoff", 0),
  sampler("eta_cutoff", 0),
  sampler("penalty_alpha", 0),
  sampler("no_repeat_ngram_size", 0),
  sampler("guidance_scale", 1),
  sampler("cfg_scale", 1),
  sampler("skew", 0),
  sampler("use_beam_search", false),
  sampler("adaptive_target", -1),
];

function refuseAlways(name: string, note: string): Parameter {
  return refused(name, "openai", { endpoints: ["chat"], note, shape: anyObject() }, () => {
    throw unsupportedParameter(name);
  });
}

function sampler(name: string, ...off: readonly (number | boolean)[]): Parameter {
  const note = `Only accepted with a value that turns it off (${off.map((value) => `\`${value}\``).join(", ")}).`;
  return refused(name, "extension", { note, shape: z.unknown() }, (value) => {
    if (!off.includes(value as number | boolean)) throw unsupportedParameter(name);
  });
}
