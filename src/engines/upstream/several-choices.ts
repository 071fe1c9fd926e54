import { cancellable } from "../../core/cancellable.ts";
import type { ExtraEvent, GenerationEvent, Usage } from "../../core/events.ts";
import { mergeBatches } from "../../core/merge-batches.ts";
import type { GenerationStream } from "./generation-stream.ts";

/**
 * Merges several generations of one choice each into one of several choices: for upstreams that take only `n: 1`. They run concurrently. Usage
 * counts the prompt once and sums the completions. What each generation says outside of its choice appears once. The first one that fails
 * ends all.
 */
export function severalChoices(streams: readonly GenerationStream[]): AsyncIterable<readonly GenerationEvent[]> {
  return cancellable((signal) => {
    const leave = (): void => {
      for (const stream of streams) void stream.return();
    };
    signal.addEventListener("abort", leave, { once: true });
    return merged(streams);
  });
}

async function* merged(streams: readonly GenerationStream[]): AsyncGenerator<readonly GenerationEvent[]> {
  /** The last that each stream has told. */
  const usages = new Map<number, Usage>();
  const seenExtras = new Set<string>();
  for await (const { choice, batch } of mergeBatches(streams.map((stream, choice) => numbered(stream, choice)))) {
    const events: GenerationEvent[] = [];
    for (const event of batch) {
      if (event.type === "usage") usages.set(choice, event.usage);
      else if (event.type === "extra" && event.choice === undefined) events.push(...unseen(event, seenExtras));
      else if (event.type !== "end") events.push(event);
      else if (event.end.kind !== "done") {
        // Leaving the merge returns the others.
        yield [...events, event];
        return;
      }
    }
    if (events.length > 0) yield events;
  }
  yield [...usageOfAll([...usages.values()], streams.length), { type: "end", end: { kind: "done" } }];
}

/** The members of an extra outside of the choices that no generation has sent yet with this value. */
function unseen(event: ExtraEvent, seen: Set<string>): ExtraEvent[] {
  const members = Object.entries(event.value).filter(([name, value]) => {
    const text = JSON.stringify([event.place, event.dialect, name, value]);
    return !seen.has(text) && seen.add(text);
  });
  return members.length === 0 ? [] : [{ ...event, value: Object.fromEntries(members) }];
}

interface NumberedBatch {
  readonly choice: number;
  readonly batch: readonly GenerationEvent[];
}

/** A stream of one choice, whose events name it by this number. */
function numbered(stream: GenerationStream, choice: number): AsyncIterator<NumberedBatch, undefined> {
  return {
    async next() {
      const step = await stream.next();
      if (step.done === true) return step;
      const batch = step.value.map((event) =>
        "choice" in event && event.choice !== undefined ? { ...event, choice } : event,
      );
      return { done: false, value: { choice, batch } };
    },
    async return() {
      await stream.return();
      return { done: true, value: undefined };
    },
  };
}

/** Only if every generation told its usage: a part of a sum is no count. */
function usageOfAll(usages: readonly Usage[], count: number): GenerationEvent[] {
  const [first] = usages;
  if (!first || usages.length < count) return [];
  const completionDetails: Record<string, number> = {};
  for (const { completionDetails: details = {} } of usages) {
    for (const [name, value] of Object.entries(details))
      completionDetails[name] = (completionDetails[name] ?? 0) + value;
  }
  const usage: Usage = {
    promptTokens: first.promptTokens,
    completionTokens: usages.reduce((sum, { completionTokens }) => sum + completionTokens, 0),
    ...(first.promptDetails && { promptDetails: first.promptDetails }),
    ...(Object.keys(completionDetails).length > 0 && { completionDetails }),
  };
  return [{ type: "usage", usage }];
}
