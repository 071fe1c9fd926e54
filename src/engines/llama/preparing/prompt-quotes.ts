import type { PromptQuote } from "../../../core/inspection.ts";
import type { Message } from "../../../core/message.ts";

/** A longer prompt is not rendered again, only to be shown. In characters. */
const longest = 512 * 1024;

/** Where a message's text begins, by its role, and where it ends: characters that nobody writes. */
const roles = ["system", "developer", "user", "assistant", "tool"] as const;
const firstMark = 0x10f000;
const endMark = String.fromCodePoint(firstMark + roles.length);
const mark = /[\u{10f000}-\u{10f005}]/gu;

/**
 * Which pieces of a rendered prompt are messages' texts. The conversation is rendered once more with marks around them; a template that
 * changes or measures texts may then write another prompt, and nothing is told. `render`: the prompt for other messages.
 */
export function promptQuotes(
  messages: readonly Message[],
  text: string,
  render: (messages: readonly Message[]) => string,
): readonly PromptQuote[] {
  if (text.length > longest || text.search(mark) !== -1) return [];
  // Templates look into what the model said, for its thoughts.
  for (const isMarked of [() => true, ({ role }: Message) => role !== "assistant"]) {
    const found = quotesIn(
      rendered(() => render(messages.map((message) => (isMarked(message) ? marked(message) : message)))),
      text,
    );
    if (found) return found;
  }
  return [];
}

function rendered(render: () => string): string {
  try {
    return render();
  } catch {
    return "";
  }
}

function marked(message: Message): Message {
  const { content, role } = message;
  const start = String.fromCodePoint(firstMark + roles.indexOf(role));
  // What a template trims stays at the edge.
  const around = (text: string): string => text.replace(/\S(?:.*\S)?/s, (words) => `${start}${words}${endMark}`);
  if (typeof content === "string") return { ...message, content: around(content) } as Message;
  if (content === null) return message;
  const parts = content.map((part) => (part.type === "text" ? { ...part, text: around(part.text) } : part));
  return { ...message, content: parts } as Message;
}

/** undefined: without the marks it is another prompt. */
function quotesIn(text: string, expected: string): PromptQuote[] | undefined {
  const quotes: PromptQuote[] = [];
  let open: { readonly start: number; readonly role: string } | undefined;
  let marks = 0;
  for (const match of text.matchAll(mark)) {
    const at = match.index - marks;
    marks += match[0].length;
    if (match[0] !== endMark) {
      open = { start: at, role: roles[(match[0].codePointAt(0) ?? firstMark) - firstMark] ?? "user" };
    } else if (open) {
      quotes.push({ ...open, end: at });
      open = undefined;
    }
  }
  return text.replace(mark, "") === expected ? quotes : undefined;
}
