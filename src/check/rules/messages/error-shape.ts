import { isObject } from "../../../core/json.ts";
import type { Json } from "../view.ts";

/** What is wrong with an error, in a stream or as a body; undefined when nothing is. Source: Anthropic's documentation, Errors. */
export function errorShapeOffence({ type, error }: Json): string | undefined {
  if (type !== "error") return `type ${JSON.stringify(type) ?? "is missing"} beside an error`;
  if (!isObject(error)) return `error is ${JSON.stringify(error) ?? "missing"}`;
  if (typeof error.type !== "string" || error.type === "") return "an error without a type";
  return typeof error.message === "string" && error.message !== "" ? undefined : "an error without a message";
}

/**
 * An error that says, in other words than Claude Code looks for, that the prompt does not fit. Source: Floway #166, which read them out
 * of Claude Code 2.1.207; recording of 2026-08.
 */
export function overflowOffence(message: string): string | undefined {
  if (!/context.{0,20}(length|window|size|limit)|too many tokens|(prompt|input) is too long/i.test(message))
    return undefined;
  const isHeard = /prompt is too long: \d+ tokens > \d+ maximum/i.test(message);
  const isHeardToo = message.includes("input length and `max_tokens` exceed context limit");
  return isHeard || isHeardToo ? undefined : "a prompt that is too long, in other words";
}
