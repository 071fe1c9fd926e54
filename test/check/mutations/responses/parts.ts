import { oneOf } from "../../random.ts";
import type { IllegalChange } from "../mutation.ts";
import { onEvent, onEvents } from "./on-response.ts";
import { type EventsDraft, insert, isWhole, type Json, ofType, remove } from "./stream-draft.ts";

const partAdded = /(content|summary)_part\.added$/;
const partDone = /(content|summary)_part\.done$/;
const textDone =
  /\.(output_text|refusal|reasoning_text|reasoning_summary_text|function_call_arguments|custom_tool_call_input)\.done$/;

function onWhole(
  rule: string,
  name: string,
  type: RegExp,
  change: (event: Json, draft: EventsDraft) => unknown,
): IllegalChange {
  return onEvents(rule, name, (draft, random) => {
    const events = isWhole(draft) ? ofType(draft, type) : [];
    return events.length > 0 && change(oneOf(events, random), draft) !== false;
  });
}

/** The whole text is in a member that depends on the type. */
function textMember(event: Json): string {
  return ["text", "refusal", "arguments", "input"].find((name) => name in event) ?? "text";
}

/** OpenAI makes the summary of an answer that was cut anew: its deltas need not add up. */
function addsUp(event: Json, draft: EventsDraft): boolean {
  const isCut = ofType(draft, /incomplete$/).length > 0;
  return !(isCut && /summary/.test(String(event.type)));
}

/** Texts in pieces. */
export const partMutations: readonly IllegalChange[] = [
  onEvent("responses/part-added", "a part that is not added", partAdded, (event, draft) => {
    const own = draft.events[draft.events.indexOf(event) + 1];
    remove(draft, event);
    return /\.(delta|done)$/.test(String(own?.type)) && !/output_item/.test(String(own?.type));
  }),
  onEvents("responses/part-added", "no parts at all", (draft) => {
    for (const event of ofType(draft, partAdded)) remove(draft, event);
    return ofType(draft, /(text|refusal)\.delta$/).length > 0;
  }),
  onEvent("responses/part-added", "added twice", partAdded, (event, draft) => insert(draft, event, { ...event })),
  onEvents("responses/part-index", "from 1 on", (draft) => {
    for (const event of draft.events)
      if ("content_index" in event) event.content_index = Number(event.content_index) + 1;
    return ofType(draft, /content_part\.added$/).length > 0;
  }),
  onEvents("responses/part-index", "summaries from 1 on", (draft) => {
    for (const event of draft.events)
      if ("summary_index" in event) event.summary_index = Number(event.summary_index) + 1;
    return ofType(draft, /summary_part\.added$/).length > 0;
  }),
  onEvents("responses/part-kind", "thoughts in a part output_text", (draft) => {
    const parts = ofType(draft, /content_part\.added$/).filter(({ part }) => (part as Json).type === "reasoning_text");
    for (const event of parts) event.part = { type: "output_text", text: "", annotations: [], logprobs: [] };
    return parts.length > 0 && ofType(draft, /reasoning_text\.delta$/).length > 0;
  }),
  onEvents("responses/part-kind", "a refusal as text", (draft) => {
    const parts = ofType(draft, /refusal\.delta$/);
    for (const event of parts) event.type = "response.output_text.delta";
    return parts.length > 0;
  }),
  onEvents("responses/part-kind", "arguments of a custom call", (draft) => {
    const parts = ofType(draft, /custom_tool_call_input\.delta$/);
    for (const event of parts) event.type = "response.function_call_arguments.delta";
    return parts.length > 0;
  }),
  onWhole("responses/part-done", "no end of the text", textDone, (event, draft) => remove(draft, event)),
  onWhole("responses/part-done", "the end of the text twice", textDone, (event, draft) =>
    insert(draft, event, { ...event }),
  ),
  onWhole("responses/part-done", "no end of the part", partDone, (event, draft) => remove(draft, event)),
  onWhole("responses/part-done", "a delta behind the end", textDone, (event, draft) => {
    const at = draft.events.indexOf(event);
    const before = draft.events[at - 1];
    if (!before || !String(before.type).endsWith(".delta")) return false;
    remove(draft, event);
    draft.events.splice(at - 1, 0, event);
    return true;
  }),
  onWhole("responses/part-whole", "a delta is lost", /\.delta$/, (event, draft) => {
    const others = ofType(draft, /\.delta$/).filter((one) => one.item_id === event.item_id);
    remove(draft, event);
    return others.length > 1 && event.delta !== "" && addsUp(event, draft) && !("summary_index" in event);
  }),
  onWhole("responses/part-whole", "another text when done", textDone, (event, draft) => {
    event[textMember(event)] = "other";
    return addsUp(event, draft) && hasDeltas(event, draft);
  }),
  onWhole("responses/part-whole", "an empty part when done", /content_part\.done$/, (event, draft) => {
    const part = event.part as Json;
    const member = part.type === "refusal" ? "refusal" : "text";
    const said = part[member];
    part[member] = "";
    return said !== "" && hasDeltas(event, draft);
  }),
  onWhole(
    "responses/part-whole",
    "arguments only at the end",
    /function_call_arguments\.delta$/,
    (event) => event.delta !== "" && (event.delta = ""),
  ),
  onWhole(
    "responses/part-logprobs",
    "lost when done",
    /output_text\.done$/,
    (event) => (event.logprobs as Json[]).pop() !== undefined && (event.logprobs as Json[]).length > 0,
  ),
  onWhole("responses/part-logprobs", "the tokens of another text", /output_text\.done$/, (event, draft) => {
    const [token] = event.logprobs as Json[];
    if (!token) return false;
    const own = ofType(draft, /output_text\.delta$/).flatMap(({ logprobs }) => logprobs as Json[]);
    for (const one of [token, own[0]]) Object.assign(one ?? {}, { token: "?", bytes: [63] });
    return event.text !== "" && !String(event.text).startsWith("?") && ofType(draft, /output_text\.done$/).length === 1;
  }),
];

function hasDeltas({ item_id: id }: Json, draft: EventsDraft): boolean {
  return ofType(draft, /\.delta$/).some((delta) => delta.item_id === id && delta.delta !== "");
}
