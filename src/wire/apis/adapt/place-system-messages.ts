import { isObject } from "../../core/json.ts";

/** The members that neutral messages and those of a chat request have in common. */
export interface RoleAndContent {
  readonly role?: unknown;
  readonly content?: unknown;
}

/** Whether a message contains instructions. */
export function isInstruction({ role }: RoleAndContent): boolean {
  return role === "system" || role === "developer";
}

/** Returns the index of the first message of the model's: where the first turn ends. */
function endOfFirstTurn(messages: readonly RoleAndContent[]): number {
  const answered = messages.findIndex(({ role }) => role === "assistant" || role === "tool");
  return answered === -1 ? messages.length : answered;
}

/**
 * Joins the instructions of the first turn, up to the model's first message, to one message at the beginning. Returns `messages` itself if
 * nothing changes. Calls `note` with the index of each message that is joined or moved.
 */
export function joinSystemMessages<M extends RoleAndContent>(
  messages: readonly M[],
  note: (at: number) => void,
): readonly M[] {
  const end = endOfFirstTurn(messages);
  if (!messages.slice(1, end).some(isInstruction)) return messages;
  const leading = messages.slice(0, end).filter(isInstruction);
  for (const [at, message] of messages.slice(0, end).entries()) if (at > 0 && isInstruction(message)) note(at);
  const others = messages.filter((message, at) => at >= end || !isInstruction(message));
  const [first] = leading;
  if (!first) return messages;
  const content = leading.length === 1 ? first.content : joinContents(leading.map((message) => message.content));
  return [{ ...first, content }, ...others];
}

/**
 * Writes instructions as a user's text between `<system-reminder>` tags, joined with the user's message before or after
 * them: those of later turns, or all for a server that accepts none.
 *
 * They do not move to the beginning, because each would change the start of the prompt: the server would process the whole conversation
 * again, for each reminder that an agent sends. Claude Code sends many. Sources of that cost:
 * https://github.com/ollama/ollama/issues/18431, https://github.com/jundot/omlx/issues/1826,
 * https://github.com/farion1231/cc-switch/pull/6941.
 *
 * Returns `messages` itself if nothing changes. Calls `note` with the index of each message that becomes a user's.
 */
export function systemMessagesAsUser<M extends RoleAndContent>(
  messages: readonly M[],
  note: (at: number) => void,
  which: "later" | "all" = "later",
): readonly M[] {
  const end = which === "all" ? 0 : endOfFirstTurn(messages);
  if (!messages.some((message, at) => at >= end && isInstruction(message))) return messages;
  /** The messages with their new contents. */
  const placed: { message: M; readonly contents: unknown[]; isReminder: boolean }[] = [];
  for (const [at, message] of messages.entries()) {
    const { content } = message;
    const last = placed.at(-1);
    if (at < end || !isInstruction(message)) {
      if (last?.isReminder === true && message.role === "user") {
        last.contents.push(content);
        last.message = message;
        last.isReminder = false;
      } else if (last?.isReminder === true && message.role === "tool") {
        // The results of one turn's calls must not be separated.
        placed.splice(-1, 0, { message, contents: [content], isReminder: false });
      } else placed.push({ message, contents: [content], isReminder: false });
      continue;
    }
    note(at);
    if (last?.message.role === "user") last.contents.push(reminder(content));
    else placed.push({ message: { ...message, role: "user" }, contents: [reminder(content)], isReminder: true });
  }
  return placed.map(({ message, contents }) =>
    contents.length === 1 && contents[0] === message.content
      ? message
      : { ...message, content: joinContents(contents) },
  );
}

function reminder(content: unknown): unknown {
  const plain = plainText(content);
  if (typeof plain === "string") return `<system-reminder>\n${plain}\n</system-reminder>`;
  return [textPart("<system-reminder>"), ...partsOf(content), textPart("</system-reminder>")];
}

/** Joins the contents of several messages: to a string if all are texts without a mark of the prompt cache. */
export function joinContents(contents: readonly unknown[]): unknown {
  const plain = contents.map(plainText);
  if (plain.every((text) => typeof text === "string")) return plain.filter((text) => text !== "").join("\n\n");
  return contents.flatMap(partsOf);
}

/** The parts of a content: a text is one part, unless it is empty. */
export function partsOf(content: unknown): readonly unknown[] {
  if (Array.isArray(content)) return content as readonly unknown[];
  return typeof content === "string" && content !== "" ? [textPart(content)] : [];
}

function textPart(text: string): { readonly type: "text"; readonly text: string } {
  return { type: "text", text };
}

function plainText(content: unknown): unknown {
  const isMarked = (part: unknown) => isObject(part) && ("cacheMinutes" in part || "cache_control" in part);
  return Array.isArray(content) && content.some(isMarked) ? content : withPlainText(content);
}

/** Joins parts that are all texts to one string, which every server accepts. */
export function withPlainText(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  const texts = content.map((part: unknown) => (isObject(part) && part["type"] === "text" ? part["text"] : undefined));
  return texts.every((text) => typeof text === "string") ? texts.join("\n") : content;
}
