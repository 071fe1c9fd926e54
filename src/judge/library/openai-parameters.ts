import { invalidRequest } from "../../wire/core/failure.ts";

/**
 * How a token is chosen, in one word.
 *
 * - greedy: always the likeliest
 * - top-p: among the likeliest that together have `topP` of the probability
 * - top-k: among the `topK` likeliest, and within these by `topP` where given
 */
export type SamplingStrategy =
  | { readonly type: "greedy" }
  | { readonly type: "top-p"; readonly temperature?: number; readonly topP?: number }
  | { readonly type: "top-k"; readonly topK: number; readonly temperature?: number; readonly topP?: number };

export interface GenerationParameters {
  /** Absent: the model's own. */
  readonly strategy?: SamplingStrategy;
  readonly maxTokens?: number;
  readonly stop?: readonly string[];
  /** llama.cpp's multiplicative penalty; 1 is off. */
  readonly repetitionPenalty?: number;
}

/** Parameters of a chat request, and `top_k` and `repeat_penalty`, which servers share beyond OpenAI's. */
export interface OpenAiParameters {
  temperature?: number | null;
  top_p?: number | null;
  top_k?: number | null;
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  stop?: string | readonly string[] | null;
  repeat_penalty?: number | null;
}

/**
 * The request parameters for a sampling strategy: greedy is `temperature: 0`; a repetition penalty of 1 is left out. Throws
 * `FailureError` (400) for an unknown strategy.
 *
 * @example
 * import { toOpenAiParameters } from "truewire";
 *
 * console.log(toOpenAiParameters({ strategy: { type: "greedy" }, maxTokens: 64, repetitionPenalty: 1.1 }));
 * // → { temperature: 0, max_tokens: 64, repeat_penalty: 1.1 }
 */
export function toOpenAiParameters(parameters: GenerationParameters): OpenAiParameters {
  const { strategy, maxTokens, stop, repetitionPenalty } = parameters;
  return {
    ...(strategy && writeStrategy(strategy)),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(stop && stop.length > 0 && { stop }),
    ...(repetitionPenalty !== undefined && repetitionPenalty !== 1 && { repeat_penalty: repetitionPenalty }),
  };
}

/**
 * The sampling strategy and length limit that a request's parameters ask for. null is the same as absent; other members are ignored. A
 * temperature of 0 is greedy, regardless of the other parameters. A `top_k` of 0 or less turns top-k off, as servers read it. Of two
 * length limits the smaller one counts.
 *
 * @example
 * import { fromOpenAiParameters } from "truewire";
 *
 * const { strategy, stop } = fromOpenAiParameters({ temperature: 0.7, top_p: 0.9, stop: "END", max_tokens: null });
 * console.log(strategy, stop);
 * // → { type: 'top-p', temperature: 0.7, topP: 0.9 } [ 'END' ]
 */
export function fromOpenAiParameters(parameters: OpenAiParameters): GenerationParameters {
  const { stop, repeat_penalty: penalty } = parameters;
  const strategy = readStrategy(parameters);
  const limits = [parameters.max_tokens, parameters.max_completion_tokens].filter((limit) => typeof limit === "number");
  const stops = typeof stop === "string" ? [stop] : (stop ?? []);
  return {
    ...(strategy && { strategy }),
    ...(limits.length > 0 && { maxTokens: Math.min(...limits) }),
    ...(stops.length > 0 && { stop: stops }),
    ...(typeof penalty === "number" && penalty !== 1 && { repetitionPenalty: penalty }),
  };
}

function writeStrategy(strategy: SamplingStrategy): OpenAiParameters {
  switch (strategy.type) {
    case "greedy":
      return { temperature: 0 };
    case "top-p":
      return writeRange(strategy);
    case "top-k":
      return { ...writeRange(strategy), top_k: strategy.topK };
    default: {
      const { type } = strategy as { readonly type: unknown };
      throw invalidRequest(
        `Unsupported sampling strategy: ${typeof type === "string" ? type : JSON.stringify(type)}`,
        "strategy.type",
        "invalid_value",
      );
    }
  }
}

function writeRange({
  temperature,
  topP,
}: {
  readonly temperature?: number;
  readonly topP?: number;
}): OpenAiParameters {
  return { ...(temperature !== undefined && { temperature }), ...(topP !== undefined && { top_p: topP }) };
}

function readStrategy({ temperature, top_p: topP, top_k: topK }: OpenAiParameters): SamplingStrategy | undefined {
  if (temperature === 0) return { type: "greedy" };
  const range = {
    ...(typeof temperature === "number" && { temperature }),
    ...(typeof topP === "number" && { topP }),
  };
  if (typeof topK === "number" && topK > 0) return { type: "top-k", topK, ...range };
  return Object.keys(range).length > 0 ? { type: "top-p", ...range } : undefined;
}
