import type { GenerationEnd, GenerationEvent, Usage } from "../../generation/event.ts";
import type { GenerationStream } from "./generation-stream.ts";

/**
 * Several generations of one choice each, told as one of several choices: for upstreams that take only `n: 1`. They run at once. Usage
 * counts the prompt once and sums the completions. The first one that fails ends all.
 */
export class SeveralChoices implements AsyncIterableIterator<readonly GenerationEvent[]> {
  readonly #streams: readonly GenerationStream[];
  #steps: Map<number, Promise<Step>>;
  #usages: Usage[] = [];
  #ended = false;

  constructor(streams: readonly GenerationStream[]) {
    this.#streams = streams;
    this.#steps = new Map(streams.map((stream, choice) => [choice, step(stream, choice)]));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<readonly GenerationEvent[], undefined>> {
    while (!this.#ended && this.#steps.size > 0) {
      const { choice, batch } = await Promise.race(this.#steps.values());
      const stream = this.#streams[choice];
      if (batch === null || !stream) {
        this.#steps.delete(choice);
        continue;
      }
      this.#steps.set(choice, step(stream, choice));
      const events = this.#merge(batch, choice);
      if (events.length > 0) return { done: false, value: events };
    }
    if (this.#ended) return { done: true, value: undefined };
    this.#ended = true;
    return { done: false, value: [...this.#usage(), { type: "end", end: { kind: "done" } }] };
  }

  async return(): Promise<IteratorResult<readonly GenerationEvent[], undefined>> {
    this.#ended = true;
    await Promise.all(this.#streams.map((stream) => stream.return()));
    return { done: true, value: undefined };
  }

  abandon(end: GenerationEnd): void {
    for (const stream of this.#streams) stream.abandon(end);
  }

  #merge(batch: readonly GenerationEvent[], choice: number): GenerationEvent[] {
    const events: GenerationEvent[] = [];
    for (const event of batch) {
      if (event.type === "usage") this.#usages.push(event.usage);
      else if (event.type !== "end")
        events.push("choice" in event && event.choice !== undefined ? { ...event, choice } : event);
      else if (event.end.kind !== "done") {
        this.#ended = true;
        this.abandon({ kind: "client-gone" });
        events.push(event);
        break;
      }
    }
    return events;
  }

  /** Only if every call told its usage: a part of a sum is no count. */
  #usage(): GenerationEvent[] {
    const [first] = this.#usages;
    if (!first || this.#usages.length < this.#streams.length) return [];
    const completionTokens = this.#usages.reduce((sum, usage) => sum + usage.completionTokens, 0);
    const completionDetails: Record<string, number> = {};
    for (const { completionDetails: details = {} } of this.#usages) {
      for (const [name, count] of Object.entries(details))
        completionDetails[name] = (completionDetails[name] ?? 0) + count;
    }
    const usage: Usage = {
      promptTokens: first.promptTokens,
      completionTokens,
      ...(first.promptDetails && { promptDetails: first.promptDetails }),
      ...(Object.keys(completionDetails).length > 0 && { completionDetails }),
    };
    return [{ type: "usage", usage }];
  }
}

interface Step {
  readonly choice: number;
  readonly batch: readonly GenerationEvent[] | null;
}

async function step(stream: GenerationStream, choice: number): Promise<Step> {
  const { value, done } = await stream.next();
  return { choice, batch: done === true ? null : value };
}
