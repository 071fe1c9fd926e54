import { detectFormat, recognizeFormat } from "./detect.ts";
import type { Call, Format, PlainFormat, Reasoning } from "./format.ts";
import { learnFormat } from "./learn-format.ts";
import { readsBack, renderCalls } from "./read-back.ts";
import type { Render } from "./read-back.ts";

/**
 * The format that a model with this chat template writes. A format that is known by its markers must read back a call that the template
 * renders; if it does not (a vendor renamed the markers), or none is known, the format is learned from how the template writes a call.
 * A template that writes none has the generic format.
 */
export function findFormat(templateSource: string, render: Render): Format {
  const known = recognizeFormat(templateSource);
  const turn = renderCalls(render, 1);
  if (turn === null || (known && readsBack(known, turn))) return known ?? detectFormat(templateSource);
  const learned = learnFormat(render);
  if (!learned) return known ?? detectFormat(templateSource);
  const base = known ?? detectFormat(templateSource);
  return base.kind === "plain" ? combined(base, learned) : learned;
}

/**
 * What the model is known for, with what its template shows. A call without markers is how a template shows one that has no syntax for
 * it: the model writes its own, and both are read. Else the template's markers are the model's.
 */
function combined(known: PlainFormat, learned: PlainFormat): PlainFormat {
  const [call] = learned.calls;
  if (call && !call.open && !learned.section) return withCall(known, call);
  if (!known.reasoning) return learned;
  if (!learned.reasoning) return { ...learned, reasoning: known.reasoning };
  const opener = learned.section?.open ?? call?.open;
  const reasoning: Reasoning = { ...known.reasoning, open: learned.reasoning.open, close: learned.reasoning.close };
  return { ...learned, reasoning: reasoning.endedBy && opener ? { ...reasoning, endedBy: opener } : reasoning };
}

/** A format that reads this call as well. */
function withCall(format: PlainFormat, call: Call): PlainFormat {
  const shape = JSON.stringify(call);
  const known = format.calls.some((other) => JSON.stringify(other) === shape);
  return known ? format : { ...format, calls: [...format.calls, call] };
}
