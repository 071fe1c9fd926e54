import { judgeSame } from "../../../../src/judge/check/rules/group/same.ts";
import type { GenerationEvent } from "../../../../src/wire/core/events.ts";
import { exact, lean } from "../../../../src/wire/apis/profile.ts";
import { responseEventsFor } from "../../legal/response-events.ts";
import { responseRequest, streamedResponseRequest } from "../../legal/response-requests.ts";
import { bodyOf, streamOf } from "../../legal/responses.ts";
import { oneOf, seeded } from "../../random.ts";
import type { IllegalChange, LegalChange } from "../mutation.ts";

type Change = (event: GenerationEvent) => GenerationEvent | undefined;

/** What is found when the streamed answer has other events than the whole ones; undefined: nothing fits. */
function compared(
  seed: number,
  type: GenerationEvent["type"] | undefined,
  change: Change,
): ReturnType<IllegalChange["make"]> {
  const random = seeded(seed);
  const profile = oneOf([lean, exact], random);
  const body = responseRequest(random);
  const events = responseEventsFor(body, random, false);
  const at = events.findIndex((event) => event.type === type);
  const event = events[at];
  if (type !== undefined && event === undefined) return undefined;
  const changed = event && change(event);
  if (event !== undefined && type !== undefined && changed === event) return undefined;
  const others = event ? events.toSpliced(at, 1, ...(changed ? [changed] : [])) : events;
  return judgeSame(
    bodyOf(body, events, profile, random),
    bodyOf(body, events, profile, random),
    streamOf(streamedResponseRequest(body, random), others, profile, random),
  ).findings;
}

const changes: readonly (readonly [rule: string, name: string, type: GenerationEvent["type"], change: Change])[] = [
  ["same/text", "a piece of a response is lost", "text-delta", () => undefined],
  [
    "same/text",
    "a space more in a response",
    "text-delta",
    (event) =>
      "text" in event && typeof event.text === "string"
        ? ({ ...event, text: `${event.text} ` } as GenerationEvent)
        : event,
  ],
  // A call without arguments has an empty object anyway.
  [
    "same/calls",
    "a piece of a response's arguments is lost",
    "tool-call-delta",
    (event) => ("arguments" in event && event.arguments === "{}" ? event : undefined),
  ],
  ["same/finish", "a response that is cut", "finish", (event) => ({ ...event, reason: "length" }) as GenerationEvent],
];

export const sameResponseMutations: readonly IllegalChange[] = changes.map(([rule, name, type, change]) => ({
  rule,
  name,
  make(seed) {
    const findings = compared(seed, type, change);
    // What was cut before cannot be cut again.
    return findings?.some((finding) => finding.rule === rule) || rule !== "same/finish" ? findings : undefined;
  },
}));

export const legalSameResponses: readonly LegalChange[] = [
  { name: "a response streamed and not", make: (seed) => compared(seed, undefined, (event) => event) },
];
