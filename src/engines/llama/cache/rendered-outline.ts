import { isSystem, outlinePrompt, outlineText, wordsOf } from "../../../wire/core/prompt-outline.ts";
import type { PromptOutline } from "../../../wire/core/prompt-outline.ts";
import type { Message, Tool } from "../../../wire/core/message.ts";
import { runSync } from "../../../wire/core/steps.ts";

/** The outline of a prompt, and where its parts begin in the rendered text, in bytes of UTF-8. Checkpoints are placed by it. */
export interface RenderedOutline extends PromptOutline {
  /** Length of the rendered text. */
  readonly bytes: number;
  /** Length of the generation prompt at its end. */
  readonly openingBytes: number;
  /** Lower bound of each message's offset: the end of the text before it. */
  readonly starts: readonly number[];
  /** Lower bound of the offset of the tool definitions. */
  readonly toolsStart: number;
}

/** Longer conversations have no outline. */
const maxMessages = 5000;
/** After this many texts that the template has changed, no other text is searched for: each search may scan the whole prompt. */
const maxMisses = 20;
/** How many characters of a text are searched for. */
const needleLength = 200;

/**
 * Outlines the prompt of a conversation, in time linear in its length. `tools` are those in the prompt; `rendered` ends with `opening`,
 * the generation prompt. Returns undefined for a conversation that is too long.
 */
export function outlineRendered(prompt: {
  readonly messages: readonly Message[];
  readonly tools: readonly Tool[];
  readonly options: unknown;
  readonly rendered: string;
  readonly opening: string;
}): RenderedOutline | undefined {
  const { messages, tools, rendered } = prompt;
  if (messages.length > maxMessages) return undefined;
  const section = toolSection(rendered, tools, messages[0]);
  let toolsStart = 0;
  let isPastTools = section === undefined;
  /** The end of the last text that was found, in characters and in bytes. */
  let end = 0;
  let endBytes = 0;
  let misses = 0;
  const moveTo = (next: number): void => {
    endBytes += Buffer.byteLength(rendered.slice(end, next));
    end = next;
  };
  const starts = messages.map((message) => {
    const needle = wordsOf(message).trim();
    const at = needle === "" || misses >= maxMisses ? -1 : rendered.indexOf(needle.slice(0, needleLength), end);
    if (needle !== "" && at === -1) misses++;
    if (section && !isPastTools && at > section.start) {
      isPastTools = true;
      moveTo(Math.max(end, Math.min(section.end, at)));
    }
    const start = endBytes;
    if (at !== -1) moveTo(at + (rendered.startsWith(needle, at) ? needle.length : needleLength));
    if (section && !isPastTools && end <= section.start) toolsStart = endBytes;
    return start;
  });
  const openingBytes = Buffer.byteLength(prompt.opening);
  return { ...runSync(outlinePrompt(prompt)), bytes: Buffer.byteLength(rendered), openingBytes, starts, toolsStart };
}

/** Outlines a prompt that is not a conversation. */
export function outlineRenderedText(text: string): RenderedOutline {
  return { ...outlineText(text), bytes: Buffer.byteLength(text), openingBytes: 0, starts: [0], toolsStart: 0 };
}

/** From the name of the first tool to that of the last one, in characters; undefined if the prompt does not contain them. */
function toolSection(
  rendered: string,
  tools: readonly Tool[],
  firstMessage: Message | undefined,
): { readonly start: number; readonly end: number } | undefined {
  const [first] = tools;
  const last = tools.at(-1);
  if (!first || !last) return undefined;
  // A system prompt may mention tools, too.
  const system = firstMessage && isSystem(firstMessage) ? wordsOf(firstMessage).trim() : "";
  const at = system === "" ? -1 : rendered.indexOf(system.slice(0, needleLength));
  const find = (name: string, from: number): number => {
    const quoted = rendered.indexOf(JSON.stringify(name), from);
    return quoted === -1 ? rendered.indexOf(name, from) : quoted;
  };
  let start = find(first.name, at === -1 ? 0 : at + system.length);
  if (start === -1) start = find(first.name, 0);
  return start === -1 ? undefined : { start, end: Math.max(start, find(last.name, start)) };
}
