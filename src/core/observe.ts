/**
 * Receives an engine's log lines, with level and fields (`req`: the request's id). A line never contains a key or a text of a
 * conversation.
 */
export type LogListener = (
  line: string,
  level: "debug" | "info" | "warn",
  fields?: Readonly<Record<string, unknown>>,
) => void;
