import type { Engine } from "../../core/engine.ts";
import { tokensOf } from "../../core/estimate-tokens.ts";
import type { GenerationEvent, Usage } from "../../core/events.ts";
import type { GenerationRequest } from "../../core/request.ts";
import type { Lease, Limits } from "../../kv/limits.ts";

/** A request that was taken within its client's limits, until it is over and what it has cost is known. */
export class Turn {
  readonly #lease: Lease;
  readonly #estimate: number;
  #cost = 0;
  #generates = false;
  #characters = 0;
  #usage: Usage | undefined;
  #hasFailed = false;

  /** `estimate`: the tokens that were taken for it. */
  constructor(lease: Lease, estimate: number) {
    this.#lease = lease;
    this.#estimate = estimate;
  }

  /** An engine whose one generation is this request: its end, however it comes, is the end of the turn. */
  engine(engine: Pick<Engine, "generate">): Pick<Engine, "generate"> {
    return {
      generate: (request) => {
        this.#generates = true;
        const iterator = engine.generate(request)[Symbol.asyncIterator]();
        const end = (): void => this.#lease.end(this.#tokens());
        // One promise a batch more, and no more: there are many batches.
        const seen = (step: IteratorResult<readonly GenerationEvent[]>): typeof step => {
          if (step.done === true) {
            end();
            return step;
          }
          const value = this.#see(step.value);
          // Before the client sees the end: its next request is not to find this one open.
          if (value.at(-1)?.type === "end") end();
          return value === step.value ? step : { done: false, value };
        };
        const failed = (error: unknown): never => {
          end();
          throw error;
        };
        return {
          [Symbol.asyncIterator]: () => ({
            next: () => iterator.next().then(seen, failed),
            return: async () => {
              end();
              await iterator.return?.();
              return { done: true, value: undefined };
            },
          }),
        };
      },
    };
  }

  /** What the request costs, where no engine generates for it. */
  costs(tokens: number): void {
    this.#cost = tokens;
  }

  /** The request was answered. Where an engine generates for it, that may go on, and its end counts. */
  answered(): void {
    if (!this.#generates) this.#lease.end(this.#cost);
  }

  /** Counts what a batch tells, and leaves out the rates that the source grants us: the client has its own. */
  #see(events: readonly GenerationEvent[]): readonly GenerationEvent[] {
    let tellsRates = false;
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
          tellsRates ||= event.source?.headers !== undefined;
          break;
        case "end":
          this.#hasFailed = "failure" in event.end;
      }
    }
    return tellsRates ? events.map(withoutRates) : events;
  }

  /** As the source has told; where it has not (yet): by what it said. What failed before it said anything costs nothing. */
  #tokens(): number {
    const said = tokensOf(this.#characters);
    if (!this.#usage) return this.#hasFailed && said === 0 ? 0 : this.#estimate + said;
    const { promptTokens, completionTokens, totalTokens } = this.#usage;
    return completionTokens > 0 ? (totalTokens ?? promptTokens + completionTokens) : promptTokens + said;
  }
}

function withoutRates(event: GenerationEvent): GenerationEvent {
  if (event.type !== "start" || !event.source) return event;
  const { headers: _, ...source } = event.source;
  return { ...event, source };
}

/** The tokens that a request without a limit of its own reserves for its answer, and the most of a limit that this may be. */
const defaultAnswerTokens = 1000;
const maxShareOfLimit = 1 / 10;

/**
 * The tokens that a request reserves for its answer while it runs: what its client allows at most (`max_tokens`), for each choice. Where
 * the client sets no limit: `answerTokens`, by default 1,000, but not more than a tenth of the smallest limit of tokens. 0 where no tokens
 * are limited.
 */
export function tokensToReserve(
  { prompt, n = 1, limits: { maxTokens } }: Pick<GenerationRequest, "prompt" | "n" | "limits">,
  { tokensPerMinute = Infinity, tokensPerDay = Infinity, answerTokens }: Limits,
): number {
  const limit = Math.min(tokensPerMinute, tokensPerDay);
  if (limit === Infinity) return 0;
  const choices = prompt.kind === "text" ? prompt.prompts.length * Math.max(n, prompt.bestOf ?? 1) : n;
  const standard = Math.min(defaultAnswerTokens, Math.ceil(limit * maxShareOfLimit));
  return choices * (maxTokens ?? answerTokens ?? standard);
}
