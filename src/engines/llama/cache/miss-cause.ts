import type { CacheMiss, PartingTexts } from "../../../core/cache-miss.ts";
import { changingPart } from "./changing-part.ts";
import { movedMessages } from "./moved-messages.ts";
import { isSystem, promptRole, sameMessage } from "./prompt-outline.ts";
import type { MessageMark, PromptOutline, ToolMark } from "./prompt-outline.ts";
import { sharedLength, sharesRest } from "./shared-pieces.ts";

export type FoundCause = Pick<CacheMiss, "cause" | "where">;

/** The place where two prompts part. */
export interface PartingPlace {
  /** In the rendered text, in bytes: where the first token that differs begins in the new prompt. */
  readonly byte: number;
  /** `before` as long as a line, for what changes by itself. */
  readonly texts: PartingTexts;
  /** What the model's thoughts begin and end with. */
  readonly thoughtMarkers: readonly string[];
}

/**
 * Why a prompt parts from an earlier one and its answer; null: only what is new in it differs. The part of the conversation that differs
 * and stands last before the place is the cause; where none does, the chat template is.
 */
export function missCause(known: PromptOutline, asked: PromptOutline, place: PartingPlace): FoundCause | null {
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

/** The prompts part where the earlier one's answer begins, or within it. */
function answerCause(known: PromptOutline, asked: PromptOutline, place: PartingPlace): FoundCause | null {
  const answer = asked.messages[known.messages.length];
  const goesOn = known.messages.every((message, at) => sameMessage(message, asked.messages[at]));
  if (!goesOn || answer?.role !== "assistant") return null;
  return { cause: dropsThought(place) ? "thoughts-dropped" : "answer-changed", where: answer.path };
}

function dropsThought({ texts: { before, known, asked }, thoughtMarkers }: PartingPlace): boolean {
  const hasMarker = (text: string): boolean =>
    // Both may have the beginning of one, such as `<|channel|>`.
    thoughtMarkers.some((marker) => (before.slice(before.length - marker.length + 1) + text).includes(marker));
  // In the new prompt: an empty thought where a long one was.
  return hasMarker(known) !== hasMarker(asked);
}

function messageCause(
  known: readonly MessageMark[],
  asked: readonly MessageMark[],
  index: number,
  { texts }: PartingPlace,
): FoundCause | null {
  const message = asked[index];
  if (!message) return null;
  const where = message.path;
  const moved = movedMessages(known, asked, index);
  if (moved) return { cause: moved, where };
  const former = known[index];
  const isLast = index === asked.length - 1;
  if (isLast && !(former && sharesRest(former, message))) return null;
  if (former?.role === message.role && former.hash === message.hash) {
    if (former.images !== message.images) return { cause: "image-changed", where };
    return { cause: "thoughts-dropped", where };
  }
  const changing = changingPart(texts);
  if (changing) return { cause: changing, where };
  if (message.role === promptRole) return { cause: "prompt-changed" };
  if (!isSystem(message) && !(index === 0 && former && isSystem(former))) return { cause: "message-changed", where };
  const isOther = former && isSystem(former) && isSystem(message) && sharedLength(former, message) === 0;
  return { cause: isOther ? "system-replaced" : "system-changed", where };
}

function toolsCause(known: readonly ToolMark[], asked: readonly ToolMark[]): FoundCause | null {
  const same = (one: ToolMark, other: ToolMark | undefined): boolean =>
    one.name === other?.name && one.hash === other.hash;
  const first = asked.findIndex((tool, at) => !same(tool, known[at]));
  if (first === -1 && asked.length === known.length) return null;
  const where = first === -1 ? "tools" : `tools[${first}]`;
  const added = firstNew(asked, known);
  const removed = firstNew(known, asked);
  if (added === -1 && removed === -1) return { cause: "tools-reordered", where };
  if (removed === -1) return { cause: "tool-added", where: `tools[${added}]` };
  if (added === -1) return { cause: "tool-removed", where: "tools" };
  return { cause: "tool-changed", where: `tools[${added}]` };
}

/** The place of the first tool that the others have not; −1: none. */
function firstNew(tools: readonly ToolMark[], others: readonly ToolMark[]): number {
  const keyOf = ({ name, hash }: ToolMark): string => `${name} ${hash}`;
  const keys = new Set(others.map(keyOf));
  return tools.findIndex((tool) => !keys.has(keyOf(tool)));
}

/** Nothing that the client sent before the place has changed. */
function templateCause(known: PromptOutline, asked: PromptOutline, place: PartingPlace): FoundCause {
  const here = asked.messages.findLast((message) => message.start <= place.byte);
  const where = here && { where: here.path };
  if (dropsThought(place)) return { cause: "thoughts-dropped", ...where };
  if (known.options !== asked.options) return { cause: "template-options" };
  const changing = changingPart(place.texts);
  if (changing) return { cause: changing };
  return { cause: "template-changed", ...where };
}
