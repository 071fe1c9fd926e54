/** What a version of Claude takes in a request. */
export interface ClaudeVersion {
  /** The types of `thinking` that it takes; none: it never thinks. */
  readonly thinking: readonly ("enabled" | "adaptive" | "between_tools" | "disabled")[];
  /** Whether it thinks in a request without `thinking`. */
  readonly thinksByDefault: boolean;
  /** The values of `output_config.effort` that it takes, from the lowest; none: it refuses the member. */
  readonly efforts: readonly string[];
  /** Whether it refuses `temperature`, `top_p` and `top_k`. */
  readonly refusesSampling?: true;
  /** Whether it refuses `temperature` and `top_p` in one request. */
  readonly samplesOneWay?: true;
  /** Whether a conversation must end with the user. */
  readonly refusesPrefill?: true;
}

/** Efforts from the lowest to the highest. `minimal` is OpenAI's. */
const efforts = ["minimal", "low", "medium", "high", "xhigh", "max"];

/** Families that always think. */
const alwaysThinking = /claude-(?:fable|mythos)-/;

const always: ClaudeVersion = {
  thinking: ["adaptive"],
  thinksByDefault: true,
  efforts: efforts.slice(1),
  refusesSampling: true,
  refusesPrefill: true,
};

/**
 * From the newest; `from`: 100 × major + minor. Sources: https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking,
 * extended-thinking and effort, "Supported models": `enabled` with a budget is from 3.7 to 4.6, `adaptive` from 4.6, effort from 4.6 and in Opus
 * 4.5, `max` from 4.6, `xhigh` from 4.7; about-claude/models/whats-new-claude-4-7, "Sampling parameters removed". A version refuses the rest
 * with status 400. `between_tools` in place of `disabled` is from 5.5 (recordings of 2026-09-29 and 2026-10-05).
 */
const versions: readonly (ClaudeVersion & { readonly from: number; readonly family?: string })[] = [
  { ...always, from: 505, thinking: ["adaptive", "between_tools"] },
  { ...always, from: 500, thinking: ["adaptive", "disabled"] },
  { ...always, from: 407, thinking: ["adaptive", "disabled"], thinksByDefault: false },
  {
    from: 406,
    thinking: ["enabled", "adaptive", "disabled"],
    thinksByDefault: false,
    efforts: ["low", "medium", "high", "max"],
    refusesPrefill: true,
    samplesOneWay: true,
  },
  {
    from: 405,
    family: "opus",
    thinking: ["enabled", "disabled"],
    thinksByDefault: false,
    efforts: ["low", "medium", "high"],
    samplesOneWay: true,
  },
  { from: 405, thinking: ["enabled", "disabled"], thinksByDefault: false, efforts: [], samplesOneWay: true },
  { from: 307, thinking: ["enabled", "disabled"], thinksByDefault: false, efforts: [] },
  { from: 0, thinking: [], thinksByDefault: false, efforts: [] },
];

/** Returns what a model takes, by its name on any platform: `claude-opus-4-5-20251101`, `anthropic/claude-3.7-sonnet`. Others: `undefined`. */
export function claudeVersion(model: unknown): ClaudeVersion | undefined {
  const name = typeof model === "string" ? model.toLowerCase() : "";
  if (alwaysThinking.test(name)) return always;
  const [, major, minor = "0"] = /claude-(?:[a-z]{1,16}-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/.exec(name) ?? [];
  if (major === undefined) return undefined;
  const version = Number(major) * 100 + Number(minor);
  return versions.find(({ from, family }) => version >= from && (family === undefined || name.includes(family)));
}

/** Returns the effort of `allowed` that is nearest to another API's and not above it, else the lowest; `undefined` without any. */
export function fittingEffort(effort: string, allowed: readonly string[]): string | undefined {
  const rank = efforts.indexOf(effort);
  if (rank === -1) return undefined;
  return allowed.findLast((one) => efforts.indexOf(one) <= rank) ?? allowed[0];
}

/** The budget of thinking for each effort, in tokens. Without an effort, Anthropic's default is `high`. */
const budgets: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 4096,
  medium: 8192,
  high: 16_384,
  xhigh: 20_480,
  max: 20_480,
};
const smallestBudget = 1024;

/**
 * Returns the budget of thinking, in tokens, for a client's budget or effort; `undefined` if `maxTokens`, which the API demands to be more, leaves
 * no room for the smallest. An effort gets half of `maxTokens` at most, the answer the rest.
 */
export function thinkingBudget(
  { budgetTokens, effort = "high" }: { readonly budgetTokens?: number; readonly effort?: string },
  maxTokens = Infinity,
): number | undefined {
  const wanted = Math.max(budgetTokens ?? budgets[effort] ?? budgets["high"] ?? 0, smallestBudget);
  const isKept = budgetTokens !== undefined && wanted < maxTokens;
  const budget = isKept ? wanted : Math.min(wanted, Math.floor(maxTokens / 2));
  return budget < smallestBudget ? undefined : budget;
}
