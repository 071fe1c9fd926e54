import type { GenerationEvent } from "../../core/events.ts";

/** What a batch, an event beside its text, and an alternative of a token take, in bytes: about what V8 needs, and not less. */
const perBatch = 48;
const perEvent = 80;
const perAlternative = 112;
const perUsage = 400;

/** An estimate of what a batch of events takes in memory, in bytes. */
export function eventBytes(events: readonly GenerationEvent[]): number {
  let sum = perBatch;
  for (const event of events) sum += perEvent + bytesBeside(event);
  return sum;
}

function bytesBeside(event: GenerationEvent): number {
  switch (event.type) {
    case "text-delta":
    case "reasoning-delta":
    case "refusal-delta":
      return 2 * event.text.length + (event.logprobs ? logprobBytes(event.logprobs) : 0);
    case "tool-call-delta":
      return 2 * event.arguments.length;
    case "finish":
    case "progress":
      return perEvent;
    case "usage":
      return perUsage;
    case "tokens":
      return event.tokens.length * 8;
    // These come once or seldom, and may hold anything.
    default:
      return JSON.stringify(event).length * 4;
  }
}

function logprobBytes(logprobs: readonly { readonly top: readonly unknown[] }[]): number {
  return logprobs.reduce((sum, { top }) => sum + (1 + top.length) * perAlternative, 0);
}
