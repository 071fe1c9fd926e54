import { oneOf } from "../../random.ts";
import type { IllegalChange } from "../mutation.ts";
import { onEvent, onEvents } from "./on-response.ts";
import { type EventsDraft, finalResponse, insert, isWhole, type Json, ofType, remove } from "./stream-draft.ts";

const added = /output_item\.added$/;
const done = /output_item\.done$/;

function item(event: Json): Json {
  return event.item as Json;
}

function isCall(event: Json): boolean {
  return String(item(event).type).endsWith("_call");
}

/** The `added` of an item whose text comes in deltas. */
function spoken(draft: EventsDraft): Json[] {
  return ofType(draft, added).filter((event) =>
    ofType(draft, /\.delta$/).some((delta) => delta.output_index === event.output_index),
  );
}

/** The output of a response that ended as it should. */
function endedOutput(draft: EventsDraft): Json[] {
  return isWhole(draft) ? ((finalResponse(draft)?.output ?? []) as Json[]) : [];
}

function onOne(
  rule: string,
  name: string,
  events: (draft: EventsDraft) => Json[],
  change: (event: Json, draft: EventsDraft) => unknown,
): IllegalChange {
  return onEvents(rule, name, (draft, random) => {
    const all = events(draft);
    return all.length > 0 && change(oneOf(all, random), draft) !== false;
  });
}

/** Items in a stream. */
export const itemMutations: readonly IllegalChange[] = [
  onEvents("responses/item-place", "no output_index", (draft) => {
    for (const event of draft.events) delete event.output_index;
    return ofType(draft, added).length > 0;
  }),
  onEvent("responses/item-place", "one event without output_index", /delta$/, (event) => delete event.output_index),
  onEvent("responses/item-place", "a text", added, (event) => (event.output_index = "0")),
  onEvent("responses/item-added", "an item that is not added", added, (event, draft) => remove(draft, event)),
  onOne("responses/item-added", "added after its first delta", spoken, (event, draft) => {
    const first = ofType(draft, /\.delta$/).find((delta) => delta.output_index === event.output_index);
    remove(draft, event);
    insert(draft, first as Json, event);
  }),
  onEvent("responses/item-once", "added twice", added, (event, draft) => insert(draft, event, { ...event })),
  onEvent("responses/item-once", "done twice", done, (event, draft) => insert(draft, event, { ...event })),
  onEvents("responses/item-once", "one place for all", (draft) => {
    for (const event of draft.events) if ("output_index" in event) event.output_index = 0;
    return ofType(draft, added).length > 1;
  }),
  onEvents("responses/item-order", "from 1 on", (draft) => {
    for (const event of draft.events) if ("output_index" in event) event.output_index = Number(event.output_index) + 1;
    return ofType(draft, added).length > 0;
  }),
  onEvents("responses/item-one-at-a-time", "a second before the first is done", (draft) => {
    const [first] = ofType(draft, done);
    const [, second] = ofType(draft, added);
    if (!first || !second) return false;
    remove(draft, first);
    insert(draft, second, first);
    return true;
  }),
  onOne(
    "responses/item-done",
    "never",
    (draft) => (isWhole(draft) ? ofType(draft, done) : []),
    (event, draft) => remove(draft, event),
  ),
  onOne(
    "responses/item-done",
    "before its last delta",
    (draft) => (isWhole(draft) ? ofType(draft, done) : []),
    (event, draft) => {
      const last = ofType(draft, /\.delta$/).findLast((delta) => delta.output_index === event.output_index);
      if (!last) return false;
      remove(draft, event);
      draft.events.splice(draft.events.indexOf(last), 0, event);
      return true;
    },
  ),
  onEvent("responses/item-one-id", "another in the delta", /delta$/, (event) => (event.item_id = "msg_2")),
  onEvent("responses/item-one-id", "another when done", done, (event) => (item(event).id = "fc_2")),
  onEvent("responses/item-one-id", "none when done", done, (event) => delete item(event).id),
  onEvents("responses/item-one-id", "the call's in place of the item's", (draft, random) => {
    const calls = ofType(draft, added).filter(isCall);
    if (calls.length === 0) return false;
    const call = oneOf(calls, random);
    const own = ofType(draft, /delta$/).filter((event) => event.output_index === call.output_index);
    for (const event of own) event.item_id = item(call).call_id;
    return own.length > 0;
  }),
  onOne(
    "responses/item-same",
    "another call_id when done",
    (draft) => ofType(draft, done).filter(isCall),
    (event) => (item(event).call_id = "call_2"),
  ),
  onOne(
    "responses/item-same",
    "another name when done",
    (draft) => ofType(draft, done).filter(isCall),
    (event) => (item(event).name = "other"),
  ),
  onOne(
    "responses/item-same",
    "no name when added",
    (draft) => (isWhole(draft) ? ofType(draft, added).filter(isCall) : []),
    (event) => (item(event).name = ""),
  ),
  onOne("responses/item-begins-empty", "added whole", spoken, (event, draft) => {
    const whole = ofType(draft, done).find(({ output_index: place }) => place === event.output_index);
    if (!whole) return false;
    event.item = { ...item(whole), status: item(event).status };
    return true;
  }),
  onEvent(
    "responses/item-status",
    "completed when added",
    added,
    (event) => "status" in item(event) && (item(event).status = "completed"),
  ),
  onEvent(
    "responses/item-status",
    "in_progress when done",
    done,
    (event) => "status" in item(event) && (item(event).status = "in_progress"),
  ),
  onEvent(
    "responses/item-status",
    "none when done",
    done,
    (event) => "status" in item(event) && delete item(event).status,
  ),
  onEvents("responses/item-output", "no output", (draft) => {
    const response = finalResponse(draft);
    if (!response || !isWhole(draft) || (response.output as Json[]).length === 0) return false;
    response.output = [];
    return true;
  }),
  onEvents("responses/item-output", "an item is missing", (draft) => endedOutput(draft).pop() !== undefined),
  onEvents("responses/item-output", "other ids", (draft) => {
    const [first] = endedOutput(draft);
    if (first) first.id = "msg_2";
    return first !== undefined;
  }),
  onEvents("responses/item-output", "other arguments", (draft) => {
    const call = endedOutput(draft).find(({ type }) => type === "function_call");
    if (call) call.arguments = '{"other":1}';
    return Boolean(call);
  }),
  onEvents("responses/item-output", "another text", (draft) => {
    const message = endedOutput(draft).find(({ type }) => type === "message");
    const [part] = message ? (message.content as Json[]) : [];
    if (part) part.text = "other";
    return Boolean(part);
  }),
];
