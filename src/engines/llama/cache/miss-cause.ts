import type { DifferingTexts } from "../../../wire/core/cache-miss.ts";
import {
  billingHeader,
  changingParts,
  isSystem,
  movedMessages,
  sameMessage,
  toolsCause,
} from "../../../wire/core/prompt-parts.ts";
import type { ChangingPart, FoundCause } from "../../../wire/core/prompt-parts.ts";
import { promptRole } from "./prompt-outline.ts";
import type { MessageMark, PromptOutline } from "./prompt-outline.ts";

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
export function missCause(known: PromptOutline, asked: PromptOutline, place: DivergencePlace): FoundCause | null {
  if (place.byte >= asked.bytes - asked.openingBytes) return null;
  if (place.byte >= known.bytes - known.openingBytes) return answerCause(known, asked, place);
  const tools = toolsCause(known.tools, asked.tools);
  const toolsStart = asked.tools.length > 0 ? asked.toolsStart : known.toolsStart;
  const index = asked.messages.findLastIndex(
    (message, at) => message.start <= place.byte && !sameMessage(message, known.messages[at]),
  );
  const message = asked.messages[index];
  if (tools && toolsStart <= place.byte && (!message || message.start <= toolsStart)) return tools;
  if (message) return messageCause(known.messages, asked.messages, index, place);
  return templateCause(known, asked, place);
}

/** The prompts diverge in the answer to the earlier prompt. */
function answerCause(known: PromptOutline, asked: PromptOutline, place: DivergencePlace): FoundCause | null {
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

function messageCause(
  known: readonly MessageMark[],
  asked: readonly MessageMark[],
  index: number,
  { texts }: DivergencePlace,
): FoundCause | null {
  const message = asked[index];
  if (!message) return null;
  const where = message.path;
  const moved = movedMessages(known.slice(index), asked.slice(index));
  if (moved) return { cause: moved, where };
  const former = known[index];
  const isLast = index === asked.length - 1;
  if (isLast && !(former && sharesRest(former.text, message.text))) return null;
  if (former?.role === message.role && former.text === message.text) return { cause: "reasoning-dropped", where };
  const changing = changingPart(texts);
  if (changing) return { cause: changing, where };
  if (message.role === promptRole) return { cause: "prompt-changed" };
  if (!isSystem(message) && !(index === 0 && former && isSystem(former))) return { cause: "message-changed", where };
  const isOther = former && isSystem(former) && isSystem(message) && sharedSentences(former.text, message.text) === 0;
  return { cause: isOther ? "system-replaced" : "system-changed", where };
}

/** The client sent the same up to the place. */
function templateCause(known: PromptOutline, asked: PromptOutline, place: DivergencePlace): FoundCause {
  const here = asked.messages.findLast((message) => message.start <= place.byte);
  const where = here && { where: here.path };
  if (dropsReasoning(place)) return { cause: "reasoning-dropped", ...where };
  if (known.options !== asked.options) return { cause: "template-options" };
  const changing = changingPart(place.texts);
  if (changing) return { cause: changing };
  return { cause: "template-changed", ...where };
}

/** How many characters of a text are split into sentences. */
const maxSplit = 16 * 1024;

/** How many characters of `asked` are in sentences or lines that `known` also contains. */
export function sharedSentences(known: string, asked: string): number {
  const sentences = (text: string): string[] => text.slice(0, maxSplit).match(/[^\n.!?]+[\n.!?]*|[\n.!?]+/g) ?? [];
  const others = new Set(sentences(known));
  return sentences(asked)
    .filter((sentence) => sentence.length > 1 && others.has(sentence))
    .reduce((sum, { length }) => sum + length, 0);
}

/** After their common beginning, most of `asked` is in `known`, too. */
function sharesRest(known: string, asked: string): boolean {
  let same = 0;
  while (same < asked.length && asked[same] === known[same]) same++;
  const rest = asked.slice(same, same + maxSplit);
  return 2 * sharedSentences(known.slice(same), rest) > rest.length;
}

/** The kind of text at the place that software changes with each request; undefined if it is none of them. */
function changingPart({ before, known, asked }: DifferingTexts): ChangingPart | undefined {
  // Tokens may diverge before characters do.
  let same = 0;
  while (same < known.length && known[same] === asked[same]) same++;
  const at = before.length + same;
  const texts = [before + known, before + asked];
  const line = (before + known).slice(0, at).split("\n").at(-1) ?? "";
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
