import { judge } from "../../../../src/judge/check/rules/judge.ts";
import { legalResponseBody, legalResponseStream } from "../../legal/responses.ts";
import { seeded } from "../../random.ts";
import { bodyDraftOf, bodyExchangeOf } from "../body/body-draft.ts";
import type { LegalChange } from "../mutation.ts";
import { legalSameResponses } from "./same.ts";
import { legalLanes } from "./lanes.ts";
import { legalSockets } from "./sockets.ts";
import { legalStored } from "./stored.ts";
import {
  type EventsDraft,
  eventsDraftOf,
  eventsExchangeOf,
  finalResponse,
  insert,
  type Json,
  ofType,
} from "./stream-draft.ts";

/** Judged with its own profile demanded where the change may not leave it. */
function onStream(
  name: string,
  exact: boolean,
  apply: (draft: EventsDraft, random: () => number) => boolean,
): LegalChange {
  return {
    name: `of a response: ${name}`,
    make(seed) {
      const { exchange, profile } = legalResponseStream(seed);
      const draft = eventsDraftOf(exchange);
      if (!apply(draft, seeded(seed))) return undefined;
      return judge(eventsExchangeOf(draft), exact ? profile.name : undefined).findings;
    },
  };
}

function onBody(name: string, change: (value: Json, random: () => number) => boolean): LegalChange {
  return {
    name: `of a whole response: ${name}`,
    make(seed) {
      const draft = bodyDraftOf(legalResponseBody(seed).exchange);
      if (draft.status !== 200 || draft.endpoint !== "responses" || !change(draft.value, seeded(seed)))
        return undefined;
      return judge(bodyExchangeOf(draft)).findings;
    },
  };
}

/** Changes that leave a legal answer legal. */
export const legalResponses: readonly LegalChange[] = [
  ...legalSameResponses,
  ...legalStored,
  ...legalSockets,
  ...legalLanes,
  onStream("comments between events", true, (draft, random) => {
    draft.rewrite = (body) =>
      body.replaceAll("\n\nevent", () => (random() < 0.5 ? "\n\n: keep-alive\n\nevent" : "\n\nevent"));
    return true;
  }),
  onStream("keepalive events", false, (draft) => {
    const [, second] = draft.events;
    if (second) insert(draft, second, { type: "keepalive", sequence_number: 0 });
    return second !== undefined;
  }),
  onStream("response.in_progress again", false, (draft) => {
    const [, second] = draft.events;
    if (second) insert(draft, second, { ...second });
    return second?.type === "response.in_progress";
  }),
  onStream("[DONE] or none", false, (draft) => {
    draft.tail = draft.tail === "" ? "data: [DONE]\n\n" : "";
    return true;
  }),
  onStream("text split over more deltas", false, (draft) => {
    const delta = ofType(draft, /output_text\.delta$/).find((event) => [...String(event.delta)].length > 1);
    if (!delta) return false;
    const [head = "", ...tail] = [...String(delta.delta)];
    delete delta.obfuscation;
    insert(draft, delta, { ...delta, delta: tail.join(""), logprobs: [] });
    delta.delta = head;
    return true;
  }),
  onStream("arguments split over more deltas", false, (draft) => {
    const delta = ofType(draft, /arguments\.delta$/).find((event) => String(event.delta).length > 1);
    if (!delta) return false;
    const text = String(delta.delta);
    delete delta.obfuscation;
    insert(draft, delta, { ...delta, delta: text.slice(1) });
    delta.delta = text.slice(0, 1);
    return true;
  }),
  onStream("other call_ids", false, (draft) => {
    let count = 0;
    draft.rewrite = (body) => body.replaceAll(/"call_id":"call_/g, '"call_id":"toolu_');
    for (const { item } of ofType(draft, /output_item\.added$/)) if ((item as Json).call_id !== undefined) count++;
    return count > 0;
  }),
  onStream("thoughts sealed anew in the response that ended", false, (draft) => {
    const thoughts = ((finalResponse(draft)?.output ?? []) as Json[]).filter((item) => "encrypted_content" in item);
    for (const item of thoughts) item.encrypted_content = "another seal";
    return thoughts.length > 0;
  }),
  onStream("a summary that is made anew of an answer that was cut", false, (draft) => {
    const done = ofType(draft, /reasoning_summary_text\.done$/);
    for (const event of done) event.text = "Another summary.";
    return done.length > 0 && ofType(draft, /incomplete$/).length > 0;
  }),
  onStream("an item of a tool that the vendor runs", false, (draft) => {
    const [, second] = ofType(draft, /created$|in_progress$/);
    if (!second || ofType(draft, /keepalive/).length > 0 || ofType(draft, /in_progress$/).length > 1) return false;
    for (const event of draft.events) if ("output_index" in event) event.output_index = Number(event.output_index) + 1;
    const item = { id: "ws_1", type: "web_search_call", status: "completed" };
    const place = { output_index: 0, item_id: "ws_1", sequence_number: 0 };
    for (const event of [
      { type: "response.output_item.done", sequence_number: 0, output_index: 0, item },
      { type: "response.web_search_call.completed", ...place },
      { type: "response.web_search_call.in_progress", ...place },
      {
        type: "response.output_item.added",
        sequence_number: 0,
        output_index: 0,
        item: { ...item, status: "in_progress" },
      },
    ])
      insert(draft, second, event);
    const response = finalResponse(draft);
    if (Array.isArray(response?.output) && response.status !== "failed") response.output.unshift(item);
    return true;
  }),
  onStream("the request is not known", true, (draft) => {
    draft.request = undefined;
    return true;
  }),
  onStream("the headers are not known", true, (draft) => {
    draft.headers = null;
    return true;
  }),
  onBody("members in another order", (value) => {
    const entries = Object.entries(value).toReversed();
    for (const name of Object.keys(value)) delete value[name];
    Object.assign(value, Object.fromEntries(entries));
    return true;
  }),
  onBody("members that nobody knows", (value) => {
    value.extra = { a: 1 };
    for (const item of value.output as Json[]) item.extra = 1;
    return true;
  }),
  onBody("defaults of another model", (value) => {
    if (value.temperature !== 1) return false;
    Object.assign(value, { temperature: 0.7, top_p: 0.98 });
    return true;
  }),
];
