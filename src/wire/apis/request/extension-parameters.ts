import * as z from "zod";
import { singleKinds } from "../../core/hosted-tool.ts";
import type { HostedTool } from "../../core/hosted-tool.ts";
import { given } from "../../core/json.ts";
import type { RequestDraft } from "./draft.ts";
import { extensionParameter, ownParameter, refusedParameter, type RequestParameter, setMember } from "./parameter.ts";
import {
  arrayTooLong,
  checkTotalLength,
  invalidType,
  listed as listedNames,
  unsupportedParameter,
  unsupportedValue,
} from "./refusals.ts";
import { anyObject, decimalShape, integerShape, list, stringOrStrings, strings } from "./shapes.ts";

const place = z.string().nullish();

/** Source: OpenAI's OpenAPI document, `CreateChatCompletionRequest`. */
const webSearchOptions = z.looseObject({
  search_context_size: z.enum(["low", "medium", "high"]).nullish(),
  user_location: z
    .object({
      type: z.literal("approximate").optional(),
      approximate: z.object({ city: place, country: place, region: place, timezone: place }).nullish(),
    })
    .nullish(),
});

/** llama.cpp searches every token of the vocabulary for each of them before the answer begins (`llama_sampler_init_dry`). */
const maxBreakers = 32;
const maxBreakersLength = 4096;

const thinkShape = z.union([z.boolean(), z.enum(["low", "medium", "high", "max"])]);

const budgetNote =
  "vLLM: the maximum number of reasoning tokens. A local model's reasoning is ended after them if its format has an end marker. Sent to upstreams unchanged.";

/** Common parameters of llama.cpp, vLLM, tabbyAPI and other servers, under the names that they have there. */
export const extensionParameters: readonly RequestParameter[] = [
  extensionParameter("top_k", { note: "0 and -1 disable it.", shape: integerShape(-1) }, (value, { sampling }) => {
    sampling.topK = Math.max(value, 0);
  }),
  extensionParameter("min_p", { note: "0 to 1.", shape: decimalShape(0, 1) }, setMember("sampling", "minP")),
  extensionParameter(
    "repetition_penalty",
    { note: "The same as `repeat_penalty`.", shape: decimalShape(0) },
    setRepeatPenalty,
  ),
  extensionParameter("repeat_penalty", { note: "llama.cpp; 1 disables it.", shape: decimalShape(0) }, setRepeatPenalty),
  extensionParameter(
    "repeat_last_n",
    {
      note: "The number of last tokens that `repeat_penalty` applies to; 0 disables it, -1 is the whole context.",
      shape: integerShape(-1),
    },
    setMember("sampling", "repeatLastN"),
  ),
  extensionParameter(
    "xtc_probability",
    { note: "0 to 1; 0 disables XTC.", shape: decimalShape(0, 1) },
    setMember("xtc", "probability"),
  ),
  extensionParameter(
    "xtc_threshold",
    { note: "0 to 1; default 0.1.", shape: decimalShape(0, 1) },
    setMember("xtc", "threshold"),
  ),
  extensionParameter(
    "dry_multiplier",
    { note: "0 disables DRY.", shape: decimalShape(0) },
    setMember("dry", "multiplier"),
  ),
  extensionParameter("dry_base", { shape: decimalShape(0) }, setMember("dry", "base")),
  extensionParameter("dry_allowed_length", { shape: integerShape(0) }, setMember("dry", "allowedLength")),
  extensionParameter(
    "dry_penalty_last_n",
    { note: "0 disables DRY; -1 is the whole context.", shape: integerShape(-1) },
    setMember("dry", "lastN"),
  ),
  extensionParameter(
    "dry_sequence_breakers",
    {
      note: "An array, or a string with a JSON array, of up to 32 strings with at most 4,096 characters in total.",
      shape: stringOrStrings(maxBreakers),
    },
    readSequenceBreakers,
  ),
  extensionParameter(
    "n_predict",
    { note: "llama.cpp: the same as `max_tokens`; -1 is no limit.", shape: integerShape(-1) },
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
    { note: "Keeps the prompt in the prompt cache for later requests; default `true`.", shape: z.boolean() },
    setMember("limits", "cachePrompt"),
  ),
  extensionParameter(
    "lora",
    {
      note: 'llama.cpp: the scales of LoRA adapters, such as `[{"id": 0, "scale": 0.5}]`; adapters that are not listed have scale 0. The default is the configuration of the local model. `GET /lora-adapters` lists the adapters.',
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
    "enable_thinking",
    {
      endpoints: ["chat"],
      note: "Qwen's API: whether the model reasons. The same as `enable_thinking` in `chat_template_kwargs`.",
      shape: z.boolean(),
    },
    setThinking,
  ),
  extensionParameter(
    "think",
    { endpoints: ["chat"], note: "Ollama: whether the model reasons, or how much.", shape: thinkShape },
    (value, draft) => {
      setThinking(value !== false, draft);
      if (typeof value === "string") draft.request.reasoning = { ...draft.request.reasoning, effort: value };
    },
  ),
  extensionParameter(
    "thinking",
    {
      endpoints: ["chat"],
      note: "DeepSeek, GLM, Kimi: `type` is `enabled`, `disabled`, or `auto`, which leaves it to the model.",
      shape: anyObject(),
    },
    ({ type }, draft) => {
      if (type === "enabled" || type === "disabled") setThinking(type === "enabled", draft);
    },
  ),
  extensionParameter(
    "documents",
    {
      endpoints: ["chat"],
      note: "Passed unchanged to the chat template.",
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
      note: "Continues the last message, which must have the role `assistant`. Requires `add_generation_prompt: false`. Cannot be combined with `response_prefix`.",
      shape: z.boolean(),
    },
    setMember("template", "continueFinalMessage"),
  ),
  extensionParameter(
    "response_prefix",
    { endpoints: ["chat"], note: "Appended to the prompt. The model continues it.", shape: z.string() },
    setMember("template", "responsePrefix"),
  ),
  extensionParameter(
    "reasoning_format",
    {
      endpoints: ["chat"],
      note: "llama.cpp. With `none`, reasoning stays in the text, between the model's own markers; otherwise it is sent in a member of its own.",
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
      note: "llama.cpp: the same as `thinking_token_budget`; -1 is no limit.",
      shape: integerShape(-1),
    },
    (value, draft) => {
      if (value >= 0) setThinkingBudget(value, draft);
    },
  ),
  extensionParameter(
    "reasoning_control",
    {
      endpoints: ["chat"],
      note: "llama.cpp: allows `POST /v1/chat/completions/control` for the answer. Here it is always allowed.",
      shape: z.boolean(),
    },
    () => {},
  ),
  extensionParameter(
    "return_token_ids",
    {
      note: "vLLM: adds `token_ids` to each choice (in a stream, those of the chunk) and `prompt_token_ids` to the answer. Local models; those of an upstream are passed on.",
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
      note: "vLLM: adds `prompt_logprobs`, the log probabilities of the prompt's tokens with 0 to 20 alternatives each. Not for streams. Local models; those of an upstream are passed on.",
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
      note: "llama.cpp: a stream begins with chunks with `prompt_progress`, the progress of prompt processing. Local models; those of an upstream are passed on.",
      shape: z.boolean(),
    },
    (value, { request, asked }) => {
      if (!value || !request.stream) return;
      request.wantsProgress = true;
      asked.includeProgress = true;
    },
  ),
  ownParameter(
    "include_reasoning",
    {
      endpoints: ["chat"],
      note: "Whether the answer contains reasoning; default `true` in profile `lean`, `false` in `exact`.",
      shape: z.boolean(),
    },
    setMember("asked", "includeReasoning"),
  ),
  ownParameter(
    "include_stop_str",
    {
      note: "Adds `stop_str`, the stop string that ended the choice, after `finish_reason`. The text never contains the stop string.",
      shape: z.boolean(),
    },
    (value, { asked }) => {
      if (value) asked.includeStopString = true;
    },
  ),
  ownParameter(
    "include_timings",
    {
      note: "Adds `timings` (milliseconds, tokens per second) after `usage`; in a stream to the last chunk, whose `choices` is empty.",
      shape: z.boolean(),
    },
    setTimings,
  ),
  ownParameter(
    "hosted_tools",
    {
      endpoints: ["chat"],
      note: "The tools that this server runs if the model calls them, by their names in the configuration: `web_search`, `web_fetch`, the names of MCP servers and programs (docs/hosted-tools.md). `GET /v1/models` lists them.",
      shape: list(z.string(), { phrase: "an array of strings", most: 32 }),
    },
    (names, draft) => addHosted(draft, ...names.map((name, index) => ownTool(name, index, draft))),
  ),
  ownParameter(
    "include_hosted_calls",
    {
      endpoints: ["chat"],
      note: "In a stream: a chunk with `hosted_call` when a hosted call begins to run, and one when it has ended (docs/hosted-tools.md).",
      shape: z.boolean(),
    },
    (value, { asked }) => {
      if (value) asked.includeHostedCalls = true;
    },
  ),
  extensionParameter(
    "timings_per_token",
    { note: "llama.cpp: the same as `include_timings`. Timings are sent once, at the end.", shape: z.boolean() },
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

/** Templates read `enable_thinking` or `thinking`. For servers without templates, the request says the same in its own terms. */
function addVariables(value: Record<string, unknown>, draft: RequestDraft): void {
  const { template } = draft;
  template.variables = { ...template.variables, ...value };
  const { enable_thinking: enabled = value["thinking"] } = value;
  if (typeof enabled === "boolean") setThinking(enabled, draft);
}

function setThinking(isOn: boolean, { request }: RequestDraft): void {
  request.reasoning = { ...request.reasoning, mode: isOn ? "on" : "off" };
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
      note: '`["text"]` is accepted. Audio output is not supported.',
      shape: list(z.enum(["text", "audio"]), { phrase: "an array of strings", most: 16 }),
    },
    (value) => {
      if (value.includes("audio")) throw unsupportedValue("modalities", "'audio'");
    },
  ),
  refuseAlways("audio", "Audio output is not supported."),
  {
    ...refusedParameter(
      "web_search_options",
      "openai",
      {
        endpoints: ["chat"],
        note: "Not refused if this server runs web searches: it then offers the model one (docs/hosted-tools.md).",
        shape: webSearchOptions,
      },
      (options, draft) => {
        const tool = webSearchTool(options);
        if (draft.runs?.(tool) !== true) throw unsupportedParameter(tool.path);
        addHosted(draft, tool);
      },
    ),
    readForwarded(value, draft) {
      draft.request.hostedTools = [webSearchTool(webSearchOptions.safeParse(value).data ?? {})];
    },
  },
  refuseAlways("moderation", "Moderation is not supported."),
];

/**
 * Samplers of other engines. A value that disables the sampler is accepted: some programs send every known sampler with every request.
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

function webSearchTool({
  search_context_size: contextSize,
  user_location: location,
}: z.infer<typeof webSearchOptions>): HostedTool {
  const userLocation = location?.approximate && given(location.approximate);
  const type = "web_search_options";
  const options = given({ contextSize, userLocation });
  return { type, kind: "web_search", name: "web_search", options, path: type, declaration: {} };
}

/** A tool by its name in the configuration. Throws `FailureError` for one that is not there, or that the client's key does not allow. */
function ownTool(name: string, index: number, { runs, hostedNames = [] }: RequestDraft): HostedTool {
  const path = `hosted_tools[${index}]`;
  if (!hostedNames.includes(name)) {
    const supported =
      hostedNames.length === 0
        ? "This server has no hosted tool that this client may use. Configure it in hostedTools."
        : `Supported: ${listedNames(hostedNames, "and")}.`;
    throw unsupportedValue(path, `'${name}'`, supported);
  }
  const kind = singleKinds.find((one) => one === name) ?? "other";
  const tool = { type: name, kind, name, options: {}, path, declaration: {}, isOwn: true } as const;
  if (kind !== "other" || runs?.(tool) === true) return tool;
  return { ...tool, kind: "mcp", options: { server: { label: name, url: `mcp:${name}` } } };
}

/** The first one of two of the same name applies. */
function addHosted({ request }: RequestDraft, ...tools: readonly HostedTool[]): void {
  const all = [...(request.hostedTools ?? []), ...tools];
  request.hostedTools = [...new Map(all.toReversed().map((tool) => [tool.name, tool])).values()].toReversed();
}

function refuseAlways(name: string, note: string): RequestParameter {
  return refusedParameter(name, "openai", { endpoints: ["chat"], note, shape: anyObject() }, () => {
    throw unsupportedParameter(name);
  });
}

function sampler(name: string, ...off: readonly (number | boolean)[]): RequestParameter {
  const note = `Accepted only with a value that disables it (${off.map((value) => `\`${value}\``).join(", ")}).`;
  return refusedParameter(name, "extension", { note, shape: z.unknown() }, (value) => {
    if (!off.includes(value as number | boolean)) throw unsupportedParameter(name);
  });
}
