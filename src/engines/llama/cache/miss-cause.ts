import type { DifferingTexts } from "../../../wire/core/cache-miss.ts";
import { messageCause, sameMessage, toolsCause } from "../../../wire/core/compare-outlines.ts";
import type { FoundCause } from "../../../wire/core/compare-outlines.ts";
import { billingHeader, changingParts } from "../../../wire/core/prompt-outline.ts";
import type { ChangingPart } from "../../../wire/core/prompt-outline.ts";
import type { RenderedOutline } from "./rendered-outline.ts";

/** The place where two prompts diverge. */
export interface DivergencePlace {
  /** Offset of the first different token in the rendered text of the new prompt, in bytes. */
  readonly byte: number;
  /** `before` is long enough to contain the beginning of the line. */
  readonly texts: DifferingTexts;
  /** The markers that open and close the model's reasoning. */
  readonly reasoningMarkers: readonly string[];
}

/**
 * Returns why a prompt diverges from an earlier one and its answer: the last part of the conversation that differs and begins before the
 * place, or the chat template if no part does. Returns null if only the new end of the prompt differs.
 */
export function missCause(known: RenderedOutline, asked: RenderedOutline, place: DivergencePlace): FoundCause | null {
  const { byte, texts } = place;
  if (byte >= asked.bytes - asked.openingBytes) return null;
  if (byte >= known.bytes - known.openingBytes) return answerCause(known, asked, place);
  const tools = toolsCause(known.tools, asked.tools);
  const toolsStart = asked.tools.length > 0 ? asked.toolsStart : known.toolsStart;
  const startOf = (at: number): number => asked.starts[at] ?? 0;
  const index = asked.messages.findLastIndex(
    (message, at) => startOf(at) <= byte && !sameMessage(message, known.messages[at]),
  );
  if (tools && toolsStart <= byte && (index === -1 || startOf(index) <= toolsStart)) return tools;
  if (index !== -1) return messageCause(known, asked, index, () => changingPart(texts));
  // The client sent the same up to the place.
  const here = asked.messages.findLast((_, at) => startOf(at) <= byte);
  const where = here && { where: here.path };
  if (dropsReasoning(place)) return { cause: "reasoning-dropped", ...where };
  if (known.options !== asked.options) return { cause: "template-options" };
  const changing = changingPart(texts);
  return changing ? { cause: changing } : { cause: "template-changed", ...where };
}

/** The prompts diverge in the answer to the earlier prompt. */
function answerCause(known: RenderedOutline, asked: RenderedOutline, place: DivergencePlace): FoundCause | null {
  const answer = asked.messages[known.messages.length];
  const continues = known.messages.every((message, at) => sameMessage(message, asked.messages[at]));
  if (!continues || answer?.role !== "assistant") return null;
  return { cause: dropsReasoning(place) ? "reasoning-dropped" : "answer-changed", where: answer.path };
}

function dropsReasoning({ texts: { before, known, asked }, reasoningMarkers }: DivergencePlace): boolean {
  const hasMarker = (text: string): boolean =>
    // Both prompts may contain the beginning of a marker, such as `<|channel|>`.
    reasoningMarkers.some((marker) => (before.slice(before.length - marker.length + 1) + text).includes(marker));
  // The new prompt may have an empty block in place of long reasoning.
  return hasMarker(known) !== hasMarker(asked);
}

/** The kind of text at the place that software changes with each request; undefined if it is none of them. */
function changingPart({ before, known, asked }: DifferingTexts): ChangingPart | undefined {
  const at = before.length;
  const texts = [before + known, before + asked];
  const line = before.slice(before.lastIndexOf("\n") + 1);
  if (billingHeader.test(line)) return "billing-header";
  for (const [kind, patterns] of changingParts) {
    const ends = texts.map((text) => Math.max(...patterns.map((pattern) => endOfMatchAt(text, pattern, at))));
    // If both matches end at the place, they are equal.
    if (ends.every((end) => end >= at) && ends.some((end) => end > at)) return kind;
  }
  return undefined;
}

/** Where a match ends that contains the place or touches it; -1 if there is none. */
function endOfMatchAt(text: string, pattern: RegExp, at: number): number {
  for (const { 0: match, index } of text.matchAll(pattern)) {
    if (index > at) return -1;
    if (at <= index + match.length) return index + match.length;
  }
  return -1;
}
