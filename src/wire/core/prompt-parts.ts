import type { CacheMiss } from "./cache-miss.ts";

/*
 * Compares the parts of two prompts, to say why the later one is not in the cache of the earlier one. The local engine compares the texts of
 * rendered prompts; for upstreams, only digests of the texts are known.
 */

export type FoundCause = Pick<CacheMiss, "cause" | "where">;

/** A message of a prompt. The texts may be digests. */
export interface PromptMessage {
  readonly role: string;
  /** Texts, documents and calls. */
  readonly text: string;
  readonly reasoning: string;
}

export interface ToolMark {
  readonly name: string;
  /** Description and parameters, or a digest of them. */
  readonly definition: string;
}

export function isSystem({ role }: Pick<PromptMessage, "role">): boolean {
  return role === "system" || role === "developer";
}

export function sameMessage(one: PromptMessage, other: PromptMessage | undefined): boolean {
  return one.role === other?.role && one.text === other.text && one.reasoning === other.reasoning;
}

/** How the tools of two prompts differ; null if they do not. */
export function toolsCause(known: readonly ToolMark[], asked: readonly ToolMark[]): FoundCause | null {
  const same = (one: ToolMark, other: ToolMark | undefined): boolean =>
    one.name === other?.name && one.definition === other.definition;
  const first = asked.findIndex((tool, at) => !same(tool, known[at]));
  if (first === -1 && asked.length === known.length) return null;
  const keyOf = ({ name, definition }: ToolMark): string => `${name}\u0000${definition}`;
  const firstNew = (tools: readonly ToolMark[], others: readonly ToolMark[]): number => {
    const keys = new Set(others.map(keyOf));
    return tools.findIndex((tool) => !keys.has(keyOf(tool)));
  };
  const added = firstNew(asked, known);
  const removed = firstNew(known, asked);
  if (added === -1 && removed === -1)
    return { cause: "tools-reordered", where: first === -1 ? "tools" : `tools[${first}]` };
  if (removed === -1) return { cause: "tool-added", where: `tools[${added}]` };
  if (added === -1) return { cause: "tool-removed", where: "tools" };
  return { cause: "tool-changed", where: `tools[${added}]` };
}

/** How many shifts are tried: many messages may say the same. */
const maxShifts = 8;

/** Whether `asked` is `known` without its first messages, or with other messages before it. */
export function movedMessages(
  known: readonly PromptMessage[],
  asked: readonly PromptMessage[],
): "messages-dropped" | "message-inserted" | undefined {
  if (shiftsOf(known, asked[0]).some((by) => continues(known.slice(by), asked))) return "messages-dropped";
  if (shiftsOf(asked, known[0]).some((by) => continues(known, asked.slice(by)))) return "message-inserted";
  return undefined;
}

/** The first places, after the beginning of the list, of a message. */
function shiftsOf(list: readonly PromptMessage[], message: PromptMessage | undefined): number[] {
  const shifts: number[] = [];
  for (let by = 1; by < list.length && shifts.length < maxShifts; by++) {
    const here = list[by];
    if (here && sameMessage(here, message)) shifts.push(by);
  }
  return shifts;
}

/** All messages that both lists have are the same. */
function continues(known: readonly PromptMessage[], asked: readonly PromptMessage[]): boolean {
  const count = Math.min(known.length, asked.length);
  // A single message proves nothing if more were known: it may be a common one ("Go on.").
  if (count < 1 || (count === 1 && known.length > 1)) return false;
  return known.slice(0, count).every((message, at) => sameMessage(message, asked[at]));
}

/** Text that software changes with each request. */
export type ChangingPart = "billing-header" | "date" | "id" | "counter";

/** Claude Code writes it first into the system prompt. Source: https://github.com/ggml-org/llama.cpp/issues/20623. */
export const billingHeader = /\bx-[a-z0-9-]{0,40}(?:billing|header)[a-z0-9-]{0,40}:/i;

const month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*";

/** The patterns of each kind, in the order in which they are tried. */
export const changingParts: readonly (readonly [ChangingPart, readonly RegExp[]])[] = [
  [
    "id",
    [
      /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi,
      // A long word of letters and digits.
      /(?<![\w-])(?=[\w-]*[A-Za-z])(?=[\w-]*\d[\w-]*\d)(?!\d{4}-\d\d-\d\d)[\w-]{12,}/g,
    ],
  ],
  [
    "date",
    [
      /\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?/g,
      /\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}/g,
      /\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?/g,
      new RegExp(`\\b${month}\\.? \\d{1,2}(?:st|nd|rd|th)?(?:,? \\d{4})?`, "gi"),
      new RegExp(`\\b\\d{1,2}(?:st|nd|rd|th|\\.)? ${month}\\.?(?:,? \\d{4})?`, "gi"),
      /\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b/gi,
      // Unix time in seconds or milliseconds.
      /(?<!\d)1[4-9]\d{8}(?:\d{3})?(?!\d)/g,
    ],
  ],
  ["counter", [/\d+(?:[.,]\d+)*/g]],
];
