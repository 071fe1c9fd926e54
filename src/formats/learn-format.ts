import type { Call, Markers, PlainFormat, Reasoning } from "./format.ts";
import { learnNamed } from "./learning/learn-named.ts";
import { learnObject } from "./learning/learn-object.ts";
import { learnReasoning } from "./learning/learn-reasoning.ts";
import { callsEnd, closesOf, startOfCall } from "./learning/turn.ts";
import type { Learned } from "./learning/turn.ts";
import { readsBack, renderCalls } from "./read-back.ts";
import type { Render } from "./read-back.ts";

/**
 * Learns a format from how a chat template writes a call of the assistant: where the name, the keys and the values stand, and what
 * stands around them. undefined: the template writes no calls, or writes them in a way that fits none of the families.
 */
export function learnFormat(render: Render): PlainFormat | undefined {
  const turn = renderCalls(render, 1);
  if (turn === null) return undefined;
  const two = renderCalls(render, 2);
  const begin = startOfCall(turn);
  const end = callsEnd(render, turn, 1);
  const text = turn.slice(begin, end);
  const both = two === null ? null : two.slice(startOfCall(two), callsEnd(render, two, 2));
  const reasoning = learnReasoning(render);
  const formats = [learnObject, learnNamed]
    .map((learn) => learn(text, both))
    .filter((learned) => learned !== undefined)
    .map((learned) => describe(learned, reasoning))
    .filter((format) => readsBack(format, turn.slice(begin)));
  // Some templates write a second call as a turn of its own; then one call must do.
  return formats.find((format) => two !== null && readsBack(format, two, 2)) ?? formats[0];
}

function describe({ section, call }: Learned, reasoning: Reasoning | undefined): PlainFormat {
  return {
    kind: "plain",
    id: "learned",
    ...(reasoning && { reasoning }),
    ...(section && {
      section: {
        open: [section.open] as Markers,
        close: closesOf(section.close).close ?? [],
        ...(section.perCall && { perCall: true }),
      },
    }),
    calls: [call satisfies Call],
  };
}
