/** What a response of a reasoning model says where its request does not. */
export interface ReasoningDefaults {
  readonly effort: string;
  readonly context: "current_turn" | "all_turns";
  readonly topP: number;
  readonly promptCacheRetention: "in_memory" | "24h";
}

/** What a model of OpenAI refuses, and what its answers say of themselves. */
export interface OpenaiModel {
  /** The API that it answers: the conversational ones, legacy completions, or embeddings. */
  readonly kind: "chat" | "completions" | "embeddings";
  /** Present for a model that reasons: the values of `reasoning.effort` that it takes, from the lowest. */
  readonly efforts?: readonly string[];
  /** Present for a model that reasons. */
  readonly defaults?: ReasoningDefaults;
  /** Whether chat takes function tools only with `reasoning_effort: "none"`. */
  readonly callsOnlyWithoutEffort?: true;
}

const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const from = (least: string, most: string): readonly string[] =>
  efforts.slice(efforts.indexOf(least), efforts.indexOf(most) + 1).filter((effort) => effort !== "minimal");

const older: ReasoningDefaults = {
  effort: "medium",
  context: "current_turn",
  topP: 1,
  promptCacheRetention: "in_memory",
};
const newer: ReasoningDefaults = { ...older, topP: 0.98, promptCacheRetention: "24h" };
const newest: ReasoningDefaults = { ...newer, context: "all_turns" };

/**
 * From the most particular name. Sources: https://platform.openai.com/docs/guides/reasoning and the models' pages; refusals recorded on 2026-01-30
 * (o4-mini) and 2026-09-24 (gpt-6-luna, gpt-6-astra); kangminlee-maker/local-OAuth-CLI-API-adapter, docs/conformance-matrix.md, 5.5.5 and
 * 5.5.6 (gpt-5.6-terra, measured on 2026-08-30). Defaults: 470 responses of 14 models recorded from 2026-06 to 2026-10, without a counterexample;
 * those of gpt-5.1, gpt-5.3 and of gpt-6 other than sol are predictions.
 */
const models: readonly (OpenaiModel & { readonly name: RegExp })[] = [
  { name: /^(?:babbage-002|davinci-002|gpt-3\.5-turbo-instruct)/, kind: "completions" },
  { name: /^text-embedding-/, kind: "embeddings" },
  { name: /^o\d/, kind: "chat", efforts: from("low", "high"), defaults: older },
  { name: /^gpt-5(?:-(?!chat)|$)/, kind: "chat", efforts: ["minimal", ...from("low", "high")], defaults: older },
  { name: /^gpt-5\.1/, kind: "chat", efforts: from("none", "high"), defaults: { ...older, effort: "none" } },
  { name: /^gpt-5\.2-codex/, kind: "chat", efforts: from("none", "xhigh"), defaults: newer },
  { name: /^gpt-5\.[2-4]/, kind: "chat", efforts: from("none", "xhigh"), defaults: { ...newer, effort: "none" } },
  { name: /^gpt-5\.5/, kind: "chat", efforts: from("none", "xhigh"), defaults: newer },
  { name: /^gpt-6-astra/, kind: "chat", efforts: from("low", "max"), defaults: newest, callsOnlyWithoutEffort: true },
  {
    name: /^gpt-(?:5\.\d|[6-9])/,
    kind: "chat",
    efforts: from("none", "max"),
    defaults: newest,
    callsOnlyWithoutEffort: true,
  },
];

/** Returns what is known of a model of OpenAI, by its name; a model that is not in the table answers chat, and does not reason. */
export function openaiModel(name: string): OpenaiModel {
  return models.find((model) => model.name.test(name)) ?? { kind: "chat" };
}

/** GPT-5.6 and its predecessors. */
const withPriority = /^(?:o\d|gpt-[345])/;

/**
 * Returns the tier that an answer names for a request: fast mode, requested as `fast` or `priority`, is `fast`, and `priority` for GPT-5.6 and older
 * models. `undefined`: the request leaves it to the server. Source: https://developers.openai.com/api/docs/guides/fast-mode; a recording of
 * gpt-5 of 2026-03-31.
 */
export function grantedTier(requested: unknown, standsFor = ""): "flex" | "fast" | "priority" | undefined {
  if (requested === "flex") return "flex";
  if (requested !== "fast" && requested !== "priority") return undefined;
  return withPriority.test(standsFor) ? "priority" : "fast";
}
