import type { CacheMiss } from "./cache-miss.ts";
import { changingParts, isSystem, promptRole } from "./prompt-outline.ts";
import type { ChangingPart, MessageOutline, PromptOutline, ToolOutline } from "./prompt-outline.ts";

/* Compares the outlines of two prompts, to say why the later one is not in the cache of the earlier one. */

export type FoundCause = Pick<CacheMiss, "cause" | "where">;

/** How a prompt differs before the end of an earlier one. In tokens, which are estimates. */
export interface BrokenPrefix extends FoundCause {
  readonly at: number;
  /** Those of the earlier prompt that follow. */
  readonly missedTokens: number;
}

export function sameMessage(one: MessageOutline, other: MessageOutline | undefined): boolean {
  return one.digest === other?.digest;
}

/** An estimate of the tokens of a prompt. */
export function tokensOf({ tools, messages }: Pick<PromptOutline, "tools" | "messages">): number {
  return sumOf(tools) + sumOf(messages);
}

function sumOf(parts: readonly { readonly tokens: number }[]): number {
  return parts.reduce((sum, { tokens }) => sum + tokens, 0);
}

/**
 * Returns the part in which a prompt diverges from an earlier one, and the tokens before it. `cause` null: it continues the earlier one, or
 * only the end of its last message is new.
 */
export function divergenceOf(
  known: PromptOutline,
  asked: PromptOutline,
): { readonly cause: FoundCause | null; readonly at: number } {
  const tools = toolsCause(known.tools, asked.tools);
  if (tools) return { cause: tools, at: 0 };
  if (known.options !== asked.options) return { cause: { cause: "template-options" }, at: 0 };
  const index = asked.messages.findIndex((message, at) => !sameMessage(message, known.messages[at]));
  const at = sumOf(asked.tools) + sumOf(index === -1 ? asked.messages : asked.messages.slice(0, index));
  return { cause: known.messages[index] ? messageCause(known, asked, index) : null, at };
}

/** Returns null if a prompt continues an earlier one. */
export function brokenPrefix(known: PromptOutline, asked: PromptOutline): BrokenPrefix | null {
  const { cause, at } = divergenceOf(known, asked);
  return cause && { ...cause, at, missedTokens: Math.max(0, tokensOf(known) - at) };
}

/** How the tools of two prompts differ; null if they do not. */
export function toolsCause(known: readonly ToolOutline[], asked: readonly ToolOutline[]): FoundCause | null {
  const first = asked.findIndex(({ definition }, at) => definition !== known[at]?.definition);
  if (first === -1 && asked.length === known.length) return null;
  const firstNew = (tools: readonly ToolOutline[], others: readonly ToolOutline[]): number => {
    const definitions = new Set(others.map(({ definition }) => definition));
    return tools.findIndex(({ definition }) => !definitions.has(definition));
  };
  const [added, removed] = [firstNew(asked, known), firstNew(known, asked)];
  if (added === -1 && removed === -1)
    return { cause: "tools-reordered", where: first === -1 ? "tools" : `tools[${first}]` };
  if (removed === -1) return { cause: "tool-added", where: `tools[${added}]` };
  if (added === -1) return { cause: "tool-removed", where: "tools" };
  return { cause: "tool-changed", where: `tools[${added}]` };
}

/**
 * Returns why a message differs from the one in its place in an earlier prompt; null if only the end of the last message does. `changing`:
 * the kind of text that changed, where the texts are known.
 */
export function messageCause(
  known: PromptOutline,
  asked: PromptOutline,
  index: number,
  changing = changedPart,
): FoundCause | null {
  const [former, message] = [known.messages[index], asked.messages[index]];
  if (!message) return null;
  const where = message.path;
  const moved = movedMessages(known.messages.slice(index), asked.messages.slice(index));
  if (moved) return { cause: moved, where };
  if (index === asked.messages.length - 1 && !(former && sharesRest(former, message))) return null;
  const isSameRole = former?.role === message.role;
  if (isSameRole && former.text === message.text) return { cause: "reasoning-dropped", where };
  if (isSameRole && withoutMedia(former) === withoutMedia(message)) return { cause: "image-changed", where };
  const part = changing(former, message);
  if (part) return { cause: part, where };
  if (message.role === promptRole) return { cause: "prompt-changed" };
  if (!isSystem(message) && !(former && isSystem(former))) return { cause: "message-changed", where };
  const isOther = former && isSystem(former) && isSystem(message) && sharedCharacters(former, message) === 0;
  return { cause: isOther ? "system-replaced" : "system-changed", where };
}

function withoutMedia({ parts }: MessageOutline): string {
  return parts.filter((part) => !part.startsWith("m")).join(" ");
}

/** How many shifts are tried: many messages may say the same. */
const maxShifts = 8;

/** Whether `asked` is `known` without its first messages, or with other messages before it. */
function movedMessages(
  known: readonly MessageOutline[],
  asked: readonly MessageOutline[],
): "messages-dropped" | "message-inserted" | undefined {
  if (shiftsOf(known, asked[0]).some((by) => continues(known.slice(by), asked))) return "messages-dropped";
  if (shiftsOf(asked, known[0]).some((by) => continues(known, asked.slice(by)))) return "message-inserted";
  return undefined;
}

/** The first places, after the beginning of the list, of a message. */
function shiftsOf(list: readonly MessageOutline[], message: MessageOutline | undefined): number[] {
  const shifts: number[] = [];
  for (let by = 1; by < list.length && shifts.length < maxShifts; by++) {
    const here = list[by];
    if (here && sameMessage(here, message)) shifts.push(by);
  }
  return shifts;
}

/** All messages that both lists have are the same. */
function continues(known: readonly MessageOutline[], asked: readonly MessageOutline[]): boolean {
  const count = Math.min(known.length, asked.length);
  // A single message proves nothing if more were known: it may be a common one ("Go on.").
  if (count < 1 || (count === 1 && known.length > 1)) return false;
  return known.slice(0, count).every((message, at) => sameMessage(message, asked[at]));
}

/** The kind of text that alone differs between two messages. */
function changedPart(former: MessageOutline | undefined, message: MessageOutline): ChangingPart | undefined {
  const [known, asked] = [former?.details?.masked, message.details?.masked];
  if (!known || !asked || former?.role !== message.role) return undefined;
  const kinds: readonly ChangingPart[] = ["billing-header", ...changingParts.map(([kind]) => kind)];
  return kinds.find((kind) => asked[kind] === known[kind]);
}

type Sentences = NonNullable<MessageOutline["details"]>["sentences"];

/** How many characters of `asked` are in sentences or lines that `known` also contains. */
function sharedCharacters(known: MessageOutline, asked: MessageOutline): number {
  return sharedIn(known.details?.sentences ?? [], asked.details?.sentences ?? []);
}

function sharedIn(known: Sentences, asked: Sentences): number {
  const others = new Set(known.map(([digest]) => digest));
  return asked.reduce((sum, [digest, length]) => (others.has(digest) ? sum + length : sum), 0);
}

/** After their common beginning, most of `asked` is in `known`, too. */
function sharesRest({ details: known }: MessageOutline, { details: asked }: MessageOutline): boolean {
  if (!known || !asked) return false;
  let same = 0;
  while (same < asked.sentences.length && asked.sentences[same]?.[0] === known.sentences[same]?.[0]) same++;
  const rest = asked.sentences.slice(same);
  return 2 * sharedIn(known.sentences.slice(same), rest) > rest.reduce((sum, [, length]) => sum + length, 0);
}

/**
 * Returns a function for how many tokens of a prompt an earlier one contains, wherever they are: what could have been in the cache. It is 0
 * for another conversation.
 */
export function likenessTo(asked: PromptOutline): (known: PromptOutline) => number {
  const texts = new Set(asked.messages.map(({ text }) => text));
  const definitions = new Set(asked.tools.map(({ definition }) => definition));
  return (known) => {
    // Each text counts once: a message that is often repeated ("Go on.") does not make conversations alike.
    const shared = new Map(
      known.messages.filter(({ text }) => texts.has(text)).map((message) => [message.text, message]),
    );
    const ofOthers = [...shared.values()].filter((message) => !isSystem(message)).length;
    // Agents send the user's first message also to models that write a title, with another system prompt.
    if (ofOthers < 2 && !sharesBeginning(known.messages[0], asked.messages[0])) return 0;
    const first = known.messages.findIndex(({ text }, at) => text !== asked.messages[at]?.text);
    const tools = known.tools.filter(({ definition }) => definitions.has(definition));
    return sumOf([...shared.values(), ...tools]) + likenessOf(known.messages[first], asked.messages[first]);
  };
}

function sharesBeginning(known: MessageOutline | undefined, asked: MessageOutline | undefined): boolean {
  if (!known || !asked || isSystem(known) !== isSystem(asked)) return false;
  return !isSystem(known) || known.text === asked.text || likenessOf(known, asked) > 0;
}

/** The tokens that two versions of a message share: all of them, if only a date, an id or a number is another one. */
function likenessOf(known: MessageOutline | undefined, asked: MessageOutline | undefined): number {
  if (!known || !asked || isSystem(known) !== isSystem(asked)) return 0;
  return changedPart(known, asked) ? asked.tokens : sharedCharacters(known, asked) / 4;
}
