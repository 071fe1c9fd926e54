/** What a model of OpenAI refuses. */
export interface OpenaiModel {
  /** The API that it answers: the conversational ones, legacy completions, or embeddings. */
  readonly kind: "chat" | "completions" | "embeddings";
  /** Present for a model that reasons: the values of `reasoning.effort` that it takes, from the lowest. */
  readonly efforts?: readonly string[];
  /** Whether chat takes function tools only with `reasoning_effort: "none"`. */
  readonly callsOnlyWithoutEffort?: true;
}

const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const from = (least: string, most: string): readonly string[] =>
  efforts.slice(efforts.indexOf(least), efforts.indexOf(most) + 1).filter((effort) => effort !== "minimal");

/**
 * From the most particular name. Sources: https://platform.openai.com/docs/guides/reasoning and the models' pages; refusals recorded on 2026-01-30
 * (o4-mini) and 2026-09-24 (gpt-6-luna, gpt-6-astra); kangminlee-maker/local-OAuth-CLI-API-adapter, docs/conformance-matrix.md, 5.5.5 and
 * 5.5.6 (gpt-5.6-terra, measured on 2026-08-30).
 */
const models: readonly (OpenaiModel & { readonly name: RegExp })[] = [
  { name: /^(?:babbage-002|davinci-002|gpt-3\.5-turbo-instruct)/, kind: "completions" },
  { name: /^text-embedding-/, kind: "embeddings" },
  { name: /^o\d/, kind: "chat", efforts: from("low", "high") },
  { name: /^gpt-5(?:-(?!chat)|$)/, kind: "chat", efforts: ["minimal", ...from("low", "high")] },
  { name: /^gpt-5\.1/, kind: "chat", efforts: from("none", "high") },
  { name: /^gpt-5\.[2-5]/, kind: "chat", efforts: from("none", "xhigh") },
  { name: /^gpt-6-astra/, kind: "chat", efforts: from("low", "max"), callsOnlyWithoutEffort: true },
  { name: /^gpt-(?:5\.\d|[6-9])/, kind: "chat", efforts: from("none", "max"), callsOnlyWithoutEffort: true },
];

/** Returns what is known of a model of OpenAI, by its name; a model that is not in the table answers chat, and does not reason. */
export function openaiModel(name: string): OpenaiModel {
  return models.find((model) => model.name.test(name)) ?? { kind: "chat" };
}
