import { z } from "zod";
import type { RequestDraft } from "./draft.ts";
import { extensionParameter, refusedParameter, type RequestParameter, setMember } from "./parameter.ts";
import { arrayTooLong, checkTotalLength, invalidType, unsupportedParameter, unsupportedValue } from "./refusals.ts";
import { anyObject, decimalShape, integerShape, list, stringOrStrings, strings } from "./shapes.ts";

/** llama.cpp searches every token of the vocabulary for each of them before the answer begins (`llama_sampler_init_dry`). */
const maxBreakers = 32;
const maxBreakersLength = 4096;

const budgetNote =
  "vLLM's: a thought is closed when it has so many tokens. Local models whose format closes thoughts with a marker; an upstream judges it itself.";

/** Common parameters of llama.cpp, vLLM, tabbyAPI and other servers, under the names that they have there. */
export const extensionParameters: readonly RequestParameter[] = [
  extensionParameter("top_k", { note: "0 and -1 turn it off.", shape: integerShape(-1) }, (value, { sampling }) => {
    sampling.topK = Math.max(value, 0);
  }),
  extensionParameter("min_p", { note: "0 to 1.", shape: decimalShape(0, 1) }, setMember("sampling", "minP")),
  extensionParameter(
    "repetition_penalty",
    { note: "The same as `repeat_penalty`.", shape: decimalShape(0) },
    setRepeatPenalty,
  ),
  extensionParameter(
    "repeat_penalty",
    { note: "llama.cpp's; 1 turns it off.", shape: decimalShape(0) },
    setRepeatPenalty,
  ),
  extensionParameter(
    "repeat_last_n",
    {
      note: "How many of the last tokens `repeat_penalty` applies to; 0 turns it off, -1: all of the context.",
      shape: integerShape(-1),
    },
    setMember("sampling", "repeatLastN"),
  ),
  extensionParameter(
    "xtc_probability",
    { note: "0 to 1; 0 turns XTC off.", shape: decimalShape(0, 1) },
    setMember("xtc", "probability"),
  ),
  extensionParameter(
    "xtc_threshold",
    { note: "0 to 1; default 0.1.", shape: decimalShape(0, 1) },
    setMember("xtc", "threshold"),
  ),
  extensionParameter(
    "dry_multiplier",
    { note: "0 turns DRY off.", shape: decimalShape(0) },
    setMember("dry", "multiplier"),
  ),
  extensionParameter("dry_base", { shape: decimalShape(0) }, setMember("dry", "base")),
  extensionParameter("dry_allowed_length", { shape: integerShape(0) }, setMember("dry", "allowedLength")),
  extensionParameter(
    "dry_penalty_last_n",
    { note: "0 turns DRY off; -1: all of the context.", shape: integerShape(-1) },
    setMember("dry", "lastN"),
  ),
  extensionParameter(
    "dry_sequence_breakers",
    {
      note: "A list, or a string that is a JSON list: up to 32 strings of 4,096 characters in total.",
      shape: stringOrStrings(maxBreakers),
    },
    readSequenceBreakers,
  ),
  extensionParameter(
    "n_predict",
    { note: "llama.cpp's name for `max_tokens`; -1: no limit.", shape: integerShape(-1) },
    (value, draft) => {
      draft.maxTokens ??= value < 0 ? Infinity : value;
    },
  ),
  extensionParameter("min_tokens", { shape: integerShape(0) }, setMember("limits", "minTokens")),
  extensionParameter("ignore_eos", { shape: z.boolean() }, setMember("limits", "ignoreEos")),
  extensionParameter(
    "stop_token_ids",
    { shape: list(integerShape(0), { most: 1000 }) },
    setMember("limits", "stopTokenIds"),
  ),
  extensionParameter(
    "cache_prompt",
    { note: "Keep the prompt in the model's cache for later requests; default true.", shape: z.boolean() },
    setMember("limits", "cachePrompt"),
  ),
  extensionParameter(
    "lora",
    {
      note: 'llama.cpp\'s: how much of which adapters is used, such as `[{"id": 0, "scale": 0.5}]`; those that are not named are not used. Default: as the local model is configured. `GET /lora-adapters` lists them.',
      shape: list(z.object({ id: integerShape(0), scale: decimalShape() }), {
        phrase: "an array of objects",
        most: 100,
      }),
    },
    setMember("sampling", "adapters"),
  ),
  extensionParameter(
    "chat_template_kwargs",
    { endpoints: ["chat"], note: "Variables for the chat template.", shape: anyObject() },
    addVariables,
  ),
  extensionParameter(
    "template_vars",
    { endpoints: ["chat"], note: "The same as `chat_template_kwargs`.", shape: anyObject() },
    addVariables,
  ),
  extensionParameter(
    "documents",
    {
      endpoints: ["chat"],
      note: "Passed unchanged to chat templates that show documents.",
      shape: list(anyObject(), { phrase: "an array of objects", most: 10_000 }),
    },
    setMember("template", "documents"),
  ),
  extensionParameter(
    "add_generation_prompt",
    { endpoints: ["chat"], shape: z.boolean() },
    setMember("template", "addGenerationPrompt"),
  ),
  extensionParameter(
    "continue_final_message",
    {
      endpoints: ["chat"],
      note: "Continue the last message, which must be the assistant's. Needs `add_generation_prompt: false`, excludes `response_prefix`.",
      shape: z.boolean(),
    },
    setMember("template", "continueFinalMessage"),
  ),
  extensionParameter(
    "response_prefix",
    { endpoints: ["chat"], note: "Appended to the prompt; the answer goes on from there.", shape: z.string() },
    setMember("template", "responsePrefix"),
  ),
  extensionParameter(
    "reasoning_format",
    {
      endpoints: ["chat"],
      note: "llama.cpp's. `none`: a model's thoughts stay in the text, between its own markers; otherwise they are sent apart from it.",
      shape: z.enum(["none", "auto", "deepseek"]),
    },
    (value, { request }) => {
      if (value === "none") request.reasoning = { ...request.reasoning, inText: true };
    },
  ),
  extensionParameter(
    "thinking_token_budget",
    { endpoints: ["chat"], note: budgetNote, shape: integerShape(0) },
    setThinkingBudget,
  ),
  extensionParameter(
    "thinking_budget_tokens",
    {
      endpoints: ["chat"],
      note: "llama.cpp's name for `thinking_token_budget`; -1: no limit.",
      shape: integerShape(-1),
    },
    (value, draft) => {
      if (value >= 0) setThinkingBudget(value, draft);
    },
  ),
  extensionParameter(
    "return_token_ids",
    {
      note: "vLLM's: the answer has `token_ids` in each choice and `prompt_token_ids`, in a stream those of each chunk. Local models only; an upstream's are passed on.",
      shape: z.boolean(),
    },
    (value, { request, asked }) => {
      if (!value) return;
      request.wantsTokenIds = true;
      asked.includeTokenIds = true;
    },
  ),
  extensionParameter(
    "prompt_logprobs",
    {
      note: "vLLM's: how likely the prompt's own tokens are, with 0 to 20 alternatives each, as `prompt_logprobs`. Local models only; an upstream's are passed on. Not with streams.",
      shape: integerShape(0, 20),
    },
    (value, { request, asked }) => {
      request.promptLogprobs = { top: value };
      asked.includePromptLogprobs = true;
    },
  ),
  extensionParameter(
    "return_progress",
    {
      note: "llama.cpp's: a stream begins with chunks that say how far the reading of the prompt is, as `prompt_progress`. Local models; an upstream's are passed on.",
      shape: z.boolean(),
    },
    (value, { request, asked }) => {
      if (!value || !request.stream) return;
      request.wantsProgress = true;
      asked.includeProgress = true;
    },
  ),
  extensionParameter(
    "include_reasoning",
    {
      endpoints: ["chat"],
      note: "Whether the answer shows reasoning; default: yes in profile `lean`, no in `exact`.",
      shape: z.boolean(),
    },
    setMember("asked", "includeReasoning"),
  ),
  extensionParameter(
    "include_stop_str",
    {
      note: "Show the stop string that ended a choice as `stop_str`, beside its `finish_reason`. The string itself is never part of the text.",
      shape: z.boolean(),
    },
    (value, { asked }) => {
      if (value) asked.includeStopString = true;
    },
  ),
  extensionParameter(
    "include_timings",
    {
      note: "Add `timings` (milliseconds, tokens a second) beside `usage`; in a stream, to the last chunk, whose `choices` is empty.",
      shape: z.boolean(),
    },
    setTimings,
  ),
  extensionParameter(
    "timings_per_token",
    { note: "llama.cpp's name for `include_timings`; they are sent once, at the end.", shape: z.boolean() },
    setTimings,
  ),
];

function setThinkingBudget(value: number, { request }: RequestDraft): void {
  request.reasoning = { ...request.reasoning, budgetTokens: value };
}

function setRepeatPenalty(value: number, { sampling }: RequestDraft): void {
  sampling.repeatPenalty = value;
}

function setTimings(value: boolean, { request, asked }: RequestDraft): void {
  if (!value) return;
  request.wantsTimings = true;
  asked.includeTimings = true;
}

function addVariables(value: Record<string, unknown>, { template }: RequestDraft): void {
  template.variables = { ...template.variables, ...value };
}

function readSequenceBreakers(value: string | string[], { dry }: RequestDraft): void {
  const path = "dry_sequence_breakers";
  const breakers = Array.isArray(value) ? value : listed(value, path);
  checkTotalLength(path, breakers, maxBreakersLength);
  dry.sequenceBreakers = breakers;
}

/** Reads a string that contains a JSON list of strings. */
function listed(text: string, path: string): string[] {
  checkTotalLength(path, [text]);
  const parsed = strings(maxBreakers).safeParse(parsedJson(text));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw issue?.code === "too_big"
    ? arrayTooLong(path, maxBreakers, (parsedJson(text) as readonly unknown[]).length)
    : invalidType(path, "an array of strings", "a string");
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** OpenAI's parameters that would change the answer and are not supported. */
export const refusedParameters: readonly RequestParameter[] = [
  refusedParameter(
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
 * Samplers of other engines. A value that turns the sampler off is accepted: some programs send every known sampler with every request.
 */
export const refusedSamplers: readonly RequestParameter[] = [
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

function refuseAlways(name: string, note: string): RequestParameter {
  return refusedParameter(name, "openai", { endpoints: ["chat"], note, shape: anyObject() }, () => {
    throw unsupportedParameter(name);
  });
}

function sampler(name: string, ...off: readonly (number | boolean)[]): RequestParameter {
  const note = `Only accepted with a value that turns it off (${off.map((value) => `\`${value}\``).join(", ")}).`;
  return refusedParameter(name, "extension", { note, shape: z.unknown() }, (value) => {
    if (!off.includes(value as number | boolean)) throw unsupportedParameter(name);
  });
}
