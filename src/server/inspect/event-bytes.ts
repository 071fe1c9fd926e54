import type { GenerationEvent } from "../../generation/event.ts";

/** What an object of an event takes beside its text, and an alternative of a token, in bytes: about what V8 needs, and not less. */
const perEvent = 96;
const perAlternative = 112;

/** An estimate of what events take in memory, in bytes. */
export function eventBytes(events: readonly GenerationEvent[]): number {
  let sum = perEvent;
  for (const event of events) sum += perEvent + 2 * contentLength(event);
  return sum;
}

/** The length of an event's text, and of what else it holds as if that were text. */
function contentLength(event: GenerationEvent): number {
  switch (event.type) {
    case "text-delta":
    case "reasoning-delta":
    case "refusal-delta":
      return event.text.length + (event.logprobs ? logprobLength(event.logprobs) : 0);
    case "tool-call-delta":
      return event.arguments.length;
    case "markup":
      return event.raw.length;
    case "finish":
    case "progress":
      return 0;
    case "tokens":
      return event.tokens.length * 8;
    // These come once or seldom, and may hold anything.
    default:
      return JSON.stringify(event).length * 2;
  }
}

function logprobLength(logprobs: readonly { readonly top: readonly unknown[] }[]): number {
  return logprobs.reduce((sum, { top }) => sum + (1 + top.length) * perAlternative, 0);
}
