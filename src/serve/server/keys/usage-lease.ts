import { tokensInCharacters } from "../../../wire/core/estimate-tokens.ts";
import type { GenerationEvent, Usage } from "../../../wire/core/events.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";
import type { LimitLease, UsageLimits } from "../../kv/limits.ts";
import type { RequestUsage } from "../../kv/spending.ts";
import type { MeasuredAnswer } from "../request-facts.ts";

/** What a lease needs to know of its request: its `RequestRecord`. */
interface UsedTokens {
  readonly usage: Usage | undefined;
  readonly used: RequestUsage | undefined;
}

/** A request that was taken from its client's limits, until it has ended and its cost is known. */
export class UsageLease {
  readonly #lease: LimitLease;
  readonly #hidesRates: boolean;
  /** A response in the background has a record of its own. */
  record: UsedTokens;

  /** `hidesRates`: the client has limits of its own, in place of those that the source reports. */
  constructor(lease: LimitLease, record: UsedTokens, hidesRates: boolean) {
    this.#lease = lease;
    this.record = record;
    this.#hidesRates = hidesRates;
  }

  /**
   * Sees a batch after the record has seen it. The lease ends before the client receives the end, so that its next request does not find
   * this one open.
   */
  observe(events: readonly GenerationEvent[]): readonly GenerationEvent[] {
    if (events.at(-1)?.type === "end") this.end();
    return this.#hidesRates && events.some((event) => event.type === "start" && event.source?.headers)
      ? events.map(withoutRates)
      : events;
  }

  /** Ends the request and replaces what was taken by its cost. Further calls do nothing. */
  end(): void {
    const { usage, used } = this.record;
    this.#lease.end(usage ? (usage.totalTokens ?? usage.promptTokens + usage.completionTokens) : 0, used);
  }
}

/**
 * What an answer used: as reported by the source, or else estimated from its text and from `estimate`, the tokens of the prompt. Of an
 * answer that was broken off, the source may have reported its beginning. Undefined: a generation that failed without text.
 */
export function usageOf({ usage, end, characters }: Readonly<MeasuredAnswer>, estimate: number): Usage | undefined {
  const generated = tokensInCharacters(characters);
  const hasFailed = end !== undefined && "failure" in end;
  if (!usage) return hasFailed && generated === 0 ? undefined : { promptTokens: estimate, completionTokens: generated };
  const { completionTokens, totalTokens: _, ...rest } = usage;
  const isWhole = end !== undefined && !hasFailed;
  if (completionTokens > 0 && (isWhole || completionTokens >= generated)) return usage;
  return { ...rest, completionTokens: generated };
}

function withoutRates(event: GenerationEvent): GenerationEvent {
  if (event.type !== "start" || !event.source) return event;
  const { headers = {} } = event.source;
  const others = Object.fromEntries(Object.entries(headers).filter(([name]) => !name.includes("ratelimit-")));
  return { ...event, source: { ...event.source, headers: others } };
}

/** The tokens that a request without a limit of its own reserves for its answer, and the largest share of a limit that this may be. */
const defaultAnswerTokens = 1000;
const maxShareOfLimit = 1 / 10;

/**
 * Returns the tokens that a request reserves for its answer while it runs: the maximum that the client sets (`max_tokens`), for each
 * choice. If the client sets none: `answerTokens`, by default 1,000, but not more than a tenth of the smallest limit of tokens. 0 if
 * neither tokens nor money are limited.
 */
export function tokensToReserve(
  { prompt, n = 1, limits: { maxTokens } }: Pick<GenerationRequest, "prompt" | "n" | "limits">,
  { tokensPerMinute = Infinity, tokensPerDay = Infinity, answerTokens, budget }: UsageLimits,
): number {
  const limit = Math.min(tokensPerMinute, tokensPerDay);
  if (limit === Infinity && !budget) return 0;
  const choices = prompt.kind === "text" ? prompt.prompts.length * Math.max(n, prompt.bestOf ?? 1) : n;
  const standard = Math.min(defaultAnswerTokens, Math.ceil(limit * maxShareOfLimit));
  return choices * (maxTokens ?? answerTokens ?? standard);
}
