import type { GenerationEvent } from "../../src/wire/core/events.ts";

/** What is wrong with the order of these events, by the rules in src/wire/core/events.ts; null when nothing is. */
export function orderViolation(events: readonly GenerationEvent[]): string | null {
  const choices = new Map<number, { calls: number; open: number | null; finished: boolean }>();
  for (const [at, event] of events.entries()) {
    const where = `event ${at} (${event.type})`;
    if (event.type === "end") return at === events.length - 1 ? null : `${where}: something follows the end`;
    if (!("choice" in event) || event.type === "extra" || event.type === "progress") continue;
    const choice = choices.get(event.choice);
    if (event.type === "start") {
      if (choice) return `${where}: the choice is open already`;
      choices.set(event.choice, { calls: 0, open: null, finished: false });
      continue;
    }
    if (!choice) return `${where}: the choice is not open`;
    if (choice.finished) return `${where}: the choice is finished`;
    if (event.type === "tool-call-start") {
      if (choice.open !== null) return `${where}: call ${choice.open} is still open`;
      if (event.index !== choice.calls) return `${where}: index ${event.index} instead of ${choice.calls}`;
      choice.open = choice.calls++;
    } else if (event.type === "tool-call-delta" || event.type === "tool-call-end") {
      if (choice.open !== event.index) return `${where}: call ${event.index} is not open`;
      if (event.type === "tool-call-end") choice.open = null;
    } else if (event.type === "finish") {
      if (choice.open !== null) return `${where}: call ${choice.open} is still open`;
      choice.finished = true;
    }
  }
  return "there is no end";
}
