import { ResponseIds } from "../ids.ts";
import type { Item } from "./kept-response.ts";

/** By the type of an item, what its id begins with. */
const prefixes: ReadonlyMap<unknown, string> = new Map(
  Object.entries({
    message: "msg_",
    reasoning: "rs_",
    function_call: "fc_",
    function_call_output: "fco_",
    custom_tool_call: "ctc_",
    custom_tool_call_output: "ctco_",
    tool_search_call: "tsc_",
    tool_search_output: "tso_",
    compaction: "cmp_",
  }),
);

/** Items that have a status where they are shown, though a client need not give one. Source: OpenAI's specification, `ItemResource`. */
const haveStatus: ReadonlySet<unknown> = new Set([
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
]);

/**
 * The input of a request as it is kept and shown: items with ids, messages with parts, references replaced by what they refer to. Where
 * nothing is found for one, it is left out.
 */
export function inputItems(
  input: unknown,
  references: ReadonlyMap<string, Item>,
  {
    responseId,
    created,
    random,
  }: { readonly responseId: string; readonly created: number; readonly random: () => number },
): Item[] {
  const ids = ResponseIds.of(responseId, random);
  const whole = (item: Item): Item[] => {
    const { id, type = item["role"] === undefined ? "item_reference" : "message", status, ...rest } = item;
    if (type === "item_reference") return references.has(String(id)) ? [references.get(String(id)) ?? item] : [];
    const prefix = prefixes.get(type) ?? "item_";
    const own = typeof id === "string" ? id : ids.item(prefix, created);
    if (type !== "message") {
      const shown = status ?? (haveStatus.has(type) ? "completed" : undefined);
      return [{ id: own, type, ...(shown !== undefined && { status: shown }), ...rest }];
    }
    const { content, role, ...others } = rest;
    return [{ id: own, type, status: status ?? "completed", content: parts(content, role), ...others, role }];
  };
  if (typeof input === "string") return whole({ role: "user", content: input });
  return Array.isArray(input) ? input.flatMap((item: unknown) => (isItem(item) ? whole(item) : [])) : [];
}

function parts(content: unknown, role: unknown): unknown {
  if (typeof content !== "string") return content;
  return role === "assistant"
    ? [{ type: "output_text", annotations: [], logprobs: [], text: content }]
    : [{ type: "input_text", text: content }];
}

function isItem(value: unknown): value is Item {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
