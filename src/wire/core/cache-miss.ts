/**
 * Why a prompt is processed again although an earlier prompt was similar. Tokens are counted in the new prompt. A prompt that continues
 * an earlier one is not a miss.
 */
export interface CacheMiss {
  readonly cause: CacheMissCause;
  /** The path of the part of the client's request that differs: `system`, `messages[2]`, `tools`. Absent: not known, or no part. */
  readonly where?: string;
  /** The index of the first token that differs, from 0. */
  readonly at: number;
  /** The number of the prompt's tokens that were in the cache. */
  readonly cachedTokens: number;
  readonly promptTokens: number;
  /** With "evicted", and where nothing changed: the number of tokens that had been in the cache. */
  readonly knownTokens?: number;
  /** The text at the first difference. It quotes the client's prompts, so it is only for clients that may see them, never for a log. */
  readonly texts?: DifferingTexts;
}

/** The text around the first difference of two prompts: at most 80 characters each. */
export interface DifferingTexts {
  /** The common text before it. */
  readonly before: string;
  /** The text after it: in the earlier prompt (and its answer), and in this one. */
  readonly known: string;
  readonly asked: string;
}

export type CacheMissCause =
  | "nothing-known"
  | "evicted"
  | "expired"
  | "other-server"
  | "not-cached"
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
  | "reasoning-dropped"
  | "answer-changed"
  | "template-options"
  | "template-changed"
  | "prompt-changed"
  | "hook";

/** A sentence on the cause, and one on how to avoid it. */
export function describeCacheMiss({ cause, where }: Pick<CacheMiss, "cause" | "where">): string {
  const { says, advice } = words[cause];
  const place = where === undefined ? "the prompt" : where;
  return `${says.replace("WHERE", place)} ${advice}`;
}

const changingLast = "Put what changes after what stays the same.";
const append = "Leave what was sent as it is, and add at the end.";

/** `WHERE` is replaced by the path. */
const words: Readonly<Record<CacheMissCause, { readonly says: string; readonly advice: string }>> = {
  "nothing-known": {
    says: "No earlier prompt begins like this one.",
    advice: "The next one that does is read from the cache.",
  },
  evicted: {
    says: "The beginning of the prompt was known, but its slot was taken by another request.",
    advice: "More slots, or a larger cacheMemory, keep more conversations.",
  },
  expired: {
    says: "The beginning of the prompt was sent before, but more than five minutes ago: the source no longer has it in its cache.",
    advice: "Ask for a longer time: ttl 1h of cache_control, or prompt_cache_retention 24h.",
  },
  "other-server": {
    says: "The beginning of the prompt was sent before, but to another URL of the upstream.",
    advice: "With balance: prefix, a conversation stays at its URL.",
  },
  "not-cached": {
    says: "The beginning of the prompt was sent before, but the source did not read it from its cache.",
    advice: "For Anthropic's API, mark its end with cache_control. Other caches may have been full.",
  },
  "billing-header": {
    says: "A billing header changed in WHERE.",
    advice: "Leave it out, or send it as a block of its own by the Messages API, where it is left out for you.",
  },
  date: { says: "A date or time changed in WHERE.", advice: changingLast },
  id: { says: "An id changed in WHERE.", advice: changingLast },
  counter: { says: "A number changed in WHERE.", advice: changingLast },
  "system-changed": { says: "The system prompt changed (WHERE).", advice: changingLast },
  "system-replaced": { says: "There is another system prompt before the same messages (WHERE).", advice: append },
  "tools-reordered": {
    says: "The tools are the same, but in another order (WHERE).",
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
    advice: "If a history must be shortened, shorten it rarely and by a large part.",
  },
  "image-changed": { says: "An image of an earlier message changed (WHERE).", advice: append },
  "reasoning-dropped": {
    says: "The reasoning of an earlier turn is no longer in the prompt (WHERE).",
    advice: "Many chat templates drop it with the next question; only some models expect it to be sent back.",
  },
  "answer-changed": {
    says: "The previous answer is in the prompt with other words or in another form (WHERE).",
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
  "prompt-changed": { says: "The prompt changed before its end.", advice: changingLast },
  hook: {
    says: "The hook of the server let an earlier message pass in another form than before (WHERE).",
    advice: "A hook that always changes a message in the same way keeps the beginning of the prompt.",
  },
};
