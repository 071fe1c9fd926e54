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

/**
 * Moves system messages to the position that every server accepts: one message at the beginning. Instructions of the first turn, up to the
 * model's first message, are joined with it. Later ones keep their position as a user's text between `<system-reminder>` tags, joined with
 * the user's message before or after them.
 *
 * Later ones do not move to the beginning, because each would change the start of the prompt: the server would process the whole
 * conversation again, for each reminder that an agent sends. Claude Code sends many. Sources of that cost:
 * https://github.com/ollama/ollama/issues/18431, https://github.com/jundot/omlx/issues/1826,
 * https://github.com/farion1231/cc-switch/pull/6941.
 *
 * Returns `messages` itself if nothing changes. Calls `note` for each message that is moved or becomes a user's.
 */
export function placeSystemMessages<M extends RoleAndContent>(
  messages: readonly M[],
  note: (id: "system-joined" | "system-as-user") => void,
): readonly M[] {
  const answered = messages.findIndex(({ role }) => role === "assistant" || role === "tool");
  const firstTurn = answered === -1 ? messages.length : answered;
  const stray = messages.findIndex((message, at) => at > 0 && isInstruction(message));
  if (stray === -1) return messages;
  const leading: M[] = [];
  /** The other messages, with their new contents. */
  const placed: { message: M; readonly contents: unknown[]; isReminder: boolean }[] = [];
  for (const [at, message] of messages.entries()) {
    const { content } = message;
    const last = placed.at(-1);
    if (!isInstruction(message)) {
      if (last?.isReminder === true && message.role === "user") {
        last.contents.push(content);
        last.message = message;
        last.isReminder = false;
      } else if (last?.isReminder === true && message.role === "tool") {
        // The results of one turn's calls must not be separated.
        placed.splice(-1, 0, { message, contents: [content], isReminder: false });
      } else placed.push({ message, contents: [content], isReminder: false });
    } else if (at < firstTurn) leading.push(message);
    else {
      note("system-as-user");
      if (last?.message.role === "user") last.contents.push(reminder(content));
      else placed.push({ message: { ...message, role: "user" }, contents: [reminder(content)], isReminder: true });
    }
  }
  const others = placed.map(({ message, contents }) =>
    contents.length === 1 && contents[0] === message.content ? message : { ...message, content: joined(contents) },
  );
  const [first] = leading;
  if (!first) return others;
  for (const message of leading) if (message !== messages[0]) note("system-joined");
  const content = leading.length === 1 ? first.content : joined(leading.map((message) => message.content));
  return [{ ...first, content }, ...others];
}

function reminder(content: unknown): unknown {
  const plain = withPlainText(content);
  if (typeof plain === "string") return `<system-reminder>\n${plain}\n</system-reminder>`;
  return [textPart("<system-reminder>"), ...partsOf(content), textPart("</system-reminder>")];
}

/** Joins the contents of several messages: to a string if all are texts. */
function joined(contents: readonly unknown[]): unknown {
  const plain = contents.map(withPlainText);
  if (plain.every((text) => typeof text === "string")) return plain.filter((text) => text !== "").join("\n\n");
  return contents.flatMap(partsOf);
}

function partsOf(content: unknown): readonly unknown[] {
  if (Array.isArray(content)) return content as readonly unknown[];
  return typeof content === "string" && content !== "" ? [textPart(content)] : [];
}

function textPart(text: string): { readonly type: "text"; readonly text: string } {
  return { type: "text", text };
}

/** Joins parts that are all texts to one string, which every server accepts. */
export function withPlainText(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  const texts = content.map((part: unknown) => (isObject(part) && part["type"] === "text" ? part["text"] : undefined));
  return texts.every((text) => typeof text === "string") ? texts.join("\n") : content;
}
