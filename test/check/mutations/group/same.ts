import { judgeSame } from "../../../../src/judge/check/rules/group/same.ts";
import type { Exchange } from "../../../../src/judge/check/rules/exchange.ts";
import type { GenerationEvent } from "../../../../src/wire/core/events.ts";
import { exact, lean } from "../../../../src/wire/apis/profile.ts";
import { writtenBody } from "../../legal/body.ts";
import { eventsFor } from "../../legal/events.ts";
import { chatRequest, streamed } from "../../legal/requests.ts";
import { writtenStream } from "../../legal/stream.ts";
import { oneOf, seeded } from "../../random.ts";
import type { IllegalChange, LegalChange } from "../mutation.ts";

type Change = (events: GenerationEvent[]) => GenerationEvent[] | undefined;

/** The same answer three times, whole, whole again, and streamed with a change: each with ids and pieces of its own. */
function three(seed: number, change: Change): [Exchange, Exchange, Exchange] | undefined {
  const random = seeded(seed);
  const profile = oneOf([lean, exact], random);
  const body = chatRequest(random);
  const events = eventsFor(body, random, false);
  const changed = change(structuredClone(events));
  if (!changed) return undefined;
  return [
    writtenBody(body, events, profile, random),
    writtenBody(body, events, profile, random),
    writtenStream(streamed(body, random), changed, profile, random),
  ];
}

/** Changes the first event of the first choice that fits. */
function onEvent<T extends GenerationEvent["type"]>(
  type: T,
  change: (event: Extract<GenerationEvent, { type: T }>) => GenerationEvent | undefined,
): Change {
  return (events) => {
    const at = events.findIndex((event) => event.type === type && "choice" in event && event.choice === 0);
    if (at < 0) return undefined;
    const event = change(events[at] as Extract<GenerationEvent, { type: T }>);
    return events.toSpliced(at, 1, ...(event ? [event] : []));
  };
}

const ofFirstCall = (event: GenerationEvent) =>
  event.type.startsWith("tool-call") &&
  "choice" in event &&
  event.choice === 0 &&
  "index" in event &&
  event.index === 0;

const wrong: readonly [rule: string, name: string, change: Change][] = [
  ["same/text", "a piece is lost", onEvent("text-delta", () => undefined)],
  ["same/text", "a piece is doubled", onEvent("text-delta", (event) => ({ ...event, text: event.text + event.text }))],
  ["same/text", "a space is lost", onEvent("text-delta", (event) => ({ ...event, text: `${event.text} ` }))],
  ["same/text", "a character is broken", onEvent("text-delta", (event) => ({ ...event, text: `${event.text}\uFFFD` }))],
  ["same/calls", "another tool", onEvent("tool-call-start", (event) => ({ ...event, name: `${event.name}_` }))],
  ["same/calls", "a piece of the arguments is lost", onEvent("tool-call-delta", () => undefined)],
  [
    "same/calls",
    "other arguments",
    onEvent("tool-call-delta", (event) => ({ ...event, arguments: `${event.arguments} ` })),
  ],
  [
    "same/calls",
    "a call is lost",
    (events) => (events.some(ofFirstCall) ? events.filter((event) => !ofFirstCall(event)) : undefined),
  ],
  [
    "same/finish",
    "another finish reason",
    onEvent("finish", (event) => ({ ...event, reason: event.reason === "content-filter" ? "stop" : "content-filter" })),
  ],
  ["same/finish", "no finish reason", onEvent("finish", () => undefined)],
];

/** Streamed and not: two answers that disagree. */
export const sameMutations: readonly IllegalChange[] = wrong.map(([rule, name, change]) => ({
  rule,
  name,
  make(seed) {
    const exchanges = three(seed, change);
    return exchanges && judgeSame(exchanges[0], exchanges[1], exchanges[2]).findings;
  },
}));

export const legalSames: readonly LegalChange[] = [
  {
    name: "the same answer with other ids, pieces and times",
    make(seed) {
      const exchanges = three(seed, (events) => events);
      return exchanges && judgeSame(exchanges[0], exchanges[1], exchanges[2]).findings;
    },
  },
  {
    name: "text that came in more pieces",
    make(seed) {
      const exchanges = three(seed, (events) =>
        events.flatMap((event) =>
          event.type === "text-delta" && event.logprobs === undefined
            ? [...event.text].map((text) => ({ ...event, text }))
            : [event],
        ),
      );
      return exchanges && judgeSame(exchanges[0], exchanges[1], exchanges[2]).findings;
    },
  },
  {
    name: "a model that answers anew each time",
    make(seed) {
      const [first] = three(seed, (events) => events) ?? [];
      const [second, , third] = three(seed + 1, (events) => events) ?? [];
      const same = first?.response.body === second?.response.body;
      return !first || !second || !third || same ? undefined : judgeSame(first, second, third).findings;
    },
  },
];
