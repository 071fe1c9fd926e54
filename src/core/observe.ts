/**
 * Hears what an engine has to say for the log: one line, how much it matters, and what belongs to it (`req`: the request's id). Never a key
 * or a text of a conversation.
 */
export type Observe = (
  line: string,
  level: "debug" | "info" | "warn",
  fields?: Readonly<Record<string, unknown>>,
) => void;
