import { tokensInCharacters } from "../../../wire/core/estimate-tokens.ts";
import type { GenerationEvent, Usage } from "../../../wire/core/events.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";
import type { LimitLease, UsageLimits } from "../../kv/limits.ts";

/** A request that was taken from its client's limits, until it has ended and its cost is known. */
export class UsageLease {
  readonly #lease: LimitLease;
  /** The prompt tokens that were taken. */
  readonly estimate: number;
  #characters = 0;
  #usage: Usage | undefined;
  #hasFailed = false;
  /** An engine generates for the request, so the cost is that of the generation; otherwise it is `cost`. */
  generates = false;
  /** In tokens. */
  cost = 0;

  /** `estimate`: the prompt tokens that were taken. */
  constructor(lease: LimitLease, estimate: number) {
    this.#lease = lease;
    this.estimate = estimate;
  }

  /**
   * Counts a batch of the generation, and removes the rate limits that the source reports: the client has its own. The lease ends before
   * the client receives the end, so that its next request does not find this one open.
   */
  observe(events: readonly GenerationEvent[]): readonly GenerationEvent[] {
    let hasRates = false;
    for (const event of events) {
      switch (event.type) {
        case "text-delta":
        case "reasoning-delta":
        case "refusal-delta":
          this.#characters += event.text.length;
          break;
        case "tool-call-delta":
          this.#characters += event.arguments.length;
          break;
        case "usage":
          this.#usage = event.usage;
          break;
        case "start":
          hasRates ||= event.source?.headers !== undefined;
          break;
        case "end":
          this.#hasFailed = "failure" in event.end;
          this.end();
      }
    }
    return hasRates ? events.map(withoutRates) : events;
  }

  /** Ends the request and replaces what was taken by its cost. Further calls do nothing. */
  end(): void {
    this.#lease.end(this.generates ? this.#generatedCost() : this.cost);
  }

  /** As reported by the source, or else estimated from the text. A generation that failed without text costs nothing. */
  #generatedCost(): number {
    const generated = tokensInCharacters(this.#characters);
    if (!this.#usage) return this.#hasFailed && generated === 0 ? 0 : this.estimate + generated;
    const { promptTokens, completionTokens, totalTokens } = this.#usage;
    return completionTokens > 0 ? (totalTokens ?? promptTokens + completionTokens) : promptTokens + generated;
  }
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
 * choice. If the client sets none: `answerTokens`, by default 1,000, but not more than a tenth of the smallest limit of tokens. 0 if no
 * tokens are limited.
 */
export function tokensToReserve(
  { prompt, n = 1, limits: { maxTokens } }: Pick<GenerationRequest, "prompt" | "n" | "limits">,
  { tokensPerMinute = Infinity, tokensPerDay = Infinity, answerTokens }: UsageLimits,
): number {
  const limit = Math.min(tokensPerMinute, tokensPerDay);
  if (limit === Infinity) return 0;
  const choices = prompt.kind === "text" ? prompt.prompts.length * Math.max(n, prompt.bestOf ?? 1) : n;
  const standard = Math.min(defaultAnswerTokens, Math.ceil(limit * maxShareOfLimit));
  return choices * (maxTokens ?? answerTokens ?? standard);
}
