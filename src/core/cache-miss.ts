/**
 * Why the beginning of a prompt was read again although an earlier prompt was like it. Tokens are counted in the new prompt. A prompt
 * that only goes on where an earlier one ended is no miss.
 */
export interface CacheMiss {
  readonly cause: CacheMissCause;
  /** Which part of the client's request it lies in, by its path: `system`, `messages[2]`, `tools`. Absent: not known, or none. */
  readonly where?: string;
  /** The first token that differs, counted from 0. */
  readonly at: number;
  /** So many tokens of the prompt were in the cache all the same. */
  readonly cachedTokens: number;
  readonly promptTokens: number;
  /** With "evicted": so many had been known. */
  readonly knownTokens?: number;
  /**
   * The text where both part. Of the client's own prompts, so for nobody but that client (and whoever may see its requests), and in no
   * log.
   */
  readonly texts?: PartingTexts;
}

/** A stretch of text on both sides of the place where two prompts part, each of at most 80 characters. */
export interface PartingTexts {
  /** What both have. */
  readonly before: string;
  /** How the earlier prompt (and its answer) went on, and how this one does. */
  readonly known: string;
  readonly asked: string;
}

export type CacheMissCause =
  | "nothing-known"
  | "evicted"
  | "billing-header"
  | "date"
  | "id"
  | "counter"
  | "system-changed"
  | "system-replaced"
  | "tools-reordered"
  | "tool-added"
  | "tool-removed"
  | "tool-changed"
  | "message-changed"
  | "message-inserted"
  | "messages-dropped"
  | "image-changed"
  | "thoughts-dropped"
  | "answer-changed"
  | "template-options"
  | "template-changed"
  | "prompt-changed";

/** What happened, and what helps, in a sentence each. */
export function cacheMissWords({ cause, where }: Pick<CacheMiss, "cause" | "where">): string {
  const { says, advice } = words[cause];
  const place = where === undefined ? "the prompt" : where;
  return `${says.replace("WHERE", place)} ${advice}`;
}

const behind = "Put what changes behind what stays the same.";
const append = "Leave what was sent as it is, and add at the end.";

/** `WHERE` stands for the path. */
const words: Readonly<Record<CacheMissCause, { readonly says: string; readonly advice: string }>> = {
  "nothing-known": {
    says: "No earlier prompt begins like this one.",
    advice: "The next one that does is read from the cache.",
  },
  evicted: {
    says: "The beginning of the prompt was known, but its slot was taken by another request.",
    advice: "More slots, or a larger cacheMemory, keep more conversations.",
  },
  "billing-header": {
    says: "A billing header changed in WHERE.",
    advice: "Leave it out, or send it as a block of its own by the Messages API, where it is left out for you.",
  },
  date: { says: "A date or time changed in WHERE.", advice: behind },
  id: { says: "An id changed in WHERE.", advice: behind },
  counter: { says: "A number changed in WHERE.", advice: behind },
  "system-changed": { says: "The system prompt changed (WHERE).", advice: behind },
  "system-replaced": { says: "There is another system prompt before the same messages (WHERE).", advice: append },
  "tools-reordered": {
    says: "The tools are the same, but stand in another order (WHERE).",
    advice: "Send them in one order, such as that of their names.",
  },
  "tool-added": { says: "A tool was added (WHERE).", advice: "Keep the tools the same within a conversation." },
  "tool-removed": { says: "A tool is gone (WHERE).", advice: "Keep the tools the same within a conversation." },
  "tool-changed": {
    says: "The description or the parameters of a tool changed (WHERE).",
    advice: "Keep the tools the same within a conversation.",
  },
  "message-changed": { says: "An earlier message changed (WHERE).", advice: append },
  "message-inserted": { says: "A message was put between earlier ones (WHERE).", advice: append },
  "messages-dropped": {
    says: "Earlier messages are gone (WHERE).",
    advice: "Where a history must be shortened, shorten it seldom and by much.",
  },
  "image-changed": { says: "An image of an earlier message changed (WHERE).", advice: append },
  "thoughts-dropped": {
    says: "The thoughts of an earlier turn are no longer in the prompt (WHERE).",
    advice: "Many chat templates drop them with the next question; only some models want them sent back.",
  },
  "answer-changed": {
    says: "The answer that was given stands in the prompt in other words or another form (WHERE).",
    advice: "Send it back as it came, white space and arguments included.",
  },
  "template-options": {
    says: "Options of the chat template changed, such as thinking or its effort.",
    advice: "Keep them the same within a conversation.",
  },
  "template-changed": {
    says: "The chat template writes earlier turns in another way now that others follow (WHERE).",
    advice: "Only another template helps.",
  },
  "prompt-changed": { says: "The prompt changed before its end.", advice: behind },
};
