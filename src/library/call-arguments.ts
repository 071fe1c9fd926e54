import { isObject } from "../core/json.ts";
import type { ToolCall } from "../core/message.ts";

/** The arguments of a call, parsed, next to the model's own text: only the text has numbers beyond a double and the order of keys. */
export type ParsedArguments =
  | { readonly valid: true; readonly value: Readonly<Record<string, unknown>>; readonly text: string }
  | { readonly valid: false; readonly value: null; readonly text: string; readonly problem: string };

/**
 * Parses the arguments of a call. Nothing is thrown: text that is no JSON object is flagged and kept. Empty text is a call without
 * arguments, `{}`. Of a custom tool, whose input is free text, there is nothing to parse: it is "not valid".
 *
 * @example
 * import { parseArguments } from "truewire";
 *
 * const good = parseArguments({ id: "call_1", name: "count", arguments: '{"from": 0, "note": ""}' });
 * console.log(good.value);
 * // → { from: 0, note: '' }
 * const bad = parseArguments({ id: "call_2", name: "count", arguments: '{"from": ' });
 * console.log(bad.valid, bad.text);
 * // → false {"from":
 */
export function parseArguments(call: ToolCall): ParsedArguments {
  const { arguments: text, kind, name } = call;
  if (kind === "custom") return { valid: false, value: null, text, problem: `${name} takes text, not JSON.` };
  if (text.trim() === "") return { valid: true, value: {}, text };
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return { valid: true, value, text };
    return { valid: false, value: null, text, problem: "The arguments are JSON, but no object." };
  } catch (error) {
    return { valid: false, value: null, text, problem: error instanceof Error ? error.message : String(error) };
  }
}
