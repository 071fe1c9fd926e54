import type { ConversationRecord } from "./conversation-store.ts";
import type { Turn } from "./turn.ts";

/** A conversation whose title or text contains the search text. */
export interface Found {
  readonly record: ConversationRecord;
  /** The first turn that contains it; undefined: only the title does. */
  readonly turn?: string;
  /** The text around it, and where it is. */
  readonly before?: string;
  readonly match?: string;
  readonly after?: string;
}

/** Characters of text that a search result shows before and after the match. */
const contextLength = 40;

/** Searches the title and the turns of a conversation for a text in lower case. Returns undefined if neither contains it. */
export function findInConversation(
  record: ConversationRecord,
  turns: readonly Turn[],
  sought: string,
): Found | undefined {
  const found = findText(
    turns.toSorted((a, b) => a.created - b.created),
    sought,
  );
  return found || record.title.toLowerCase().includes(sought) ? { record, ...found } : undefined;
}

/** Returns the first of the turns whose text contains a text in lower case, with what is around it. */
function findText(turns: readonly Turn[], sought: string): Omit<Found, "record"> | undefined {
  for (const turn of turns) {
    for (const text of textsOf(turn)) {
      const at = text.toLowerCase().indexOf(sought);
      if (at === -1) continue;
      const [from, to] = [Math.max(0, at - contextLength), at + sought.length];
      return {
        turn: turn.id,
        before: (from > 0 ? "…" : "") + text.slice(from, at),
        match: text.slice(at, to),
        after: text.slice(to, to + contextLength) + (to + contextLength < text.length ? "…" : ""),
      };
    }
  }
  return undefined;
}

function textsOf(turn: Turn): readonly string[] {
  if (turn.kind === "question")
    return [turn.text, ...(turn.files ?? []).flatMap((file) => [file.name, ...("text" in file ? [file.text] : [])])];
  if (turn.kind === "results") return turn.results.map(({ text }) => text);
  return turn.answer.choices.map(({ text }) => text.toString());
}
