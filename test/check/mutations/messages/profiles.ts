import { type BodyDraft, type Json } from "../body/body-draft.ts";
import { type BodyMutation, onBodyText, onObject } from "../body/on-body.ts";
import type { IllegalChange } from "../mutation.ts";
import { illegalMessageBody } from "./bodies.ts";
import { illegalMessageStream } from "./illegal-streams.ts";
import { blockOf, type MessageDraft, type MessageMutation, ofType, onEvent, onText, starts } from "./message-draft.ts";

const all = ({ events }: MessageDraft) => events.filter(({ data }) => data.type !== "ping");
const isExact = (draft: MessageDraft) => draft.events.some(({ spaces }) => spaces > 0);
const exactEvents = (draft: MessageDraft) => (isExact(draft) && draft.events.length > 8 ? all(draft) : []);
const leanEvents = (draft: MessageDraft) => (isExact(draft) || draft.events.length < 8 ? [] : all(draft));
const messages = (draft: BodyDraft) => (draft.endpoint === "messages" && draft.status === 200 ? [draft.value] : []);

/** Streams of a demanded profile, changed into what is legal and not that profile. */
const streams: readonly MessageMutation[] = [
  onText("profile/messages-layout", "spaces between tokens", (body) => body.replace(',"message":', ', "message": ')),
  onText(
    "profile/messages-layout",
    "another ping",
    (body) => body.replaceAll('{"type": "ping"}', '{"type":"ping"}'),
    (draft) => ofType(draft, "ping").length > 0,
  ),
  onEvent("profile/messages-padding", "too many spaces", exactEvents, (event) => (event.spaces = 16)),
  onEvent("profile/messages-padding", "none in the whole stream", exactEvents, (_, draft) => {
    for (const event of draft.events) event.spaces = 0;
  }),
  onEvent("profile/messages-padding", "some in lean", leanEvents, (event) => (event.spaces = 3)),
  onEvent(
    "profile/messages-members",
    "another order",
    (draft) => all(draft).slice(1, -1),
    ({ data }) => reversed(data),
  ),
  onEvent(
    "profile/messages-members",
    "a call without its caller",
    (draft) => starts(draft, "tool_use"),
    (event) => delete blockOf(event).caller,
  ),
  onEvent(
    "profile/messages-members",
    "no stop_details",
    (draft) => ofType(draft, "message_delta"),
    ({ data }) => delete (data.delta as Json).stop_details,
  ),
  onEvent("profile/messages-ids", "an id of another length", exactEvents, (_, draft) => {
    for (const { data } of ofType(draft, "message_start")) (data.message as Json).id = "msg_1";
  }),
  {
    rule: "profile/messages-headers",
    name: "no Cache-Control",
    apply(draft) {
      if (draft.headers) delete draft.headers["cache-control"];
      return draft.headers !== null;
    },
  },
];

const bodies: readonly BodyMutation[] = [
  onBodyText(
    "profile/messages-layout",
    "a final line feed",
    () => true,
    (body) => `${body}\n`,
  ),
  onObject("profile/messages-members", "another order in a body", messages, reversed),
  onObject("profile/messages-members", "a usage without its tier", messages, ({ usage }) => {
    delete (usage as Json).service_tier;
  }),
  onObject(
    "profile/messages-headers",
    "a charset",
    (draft) => (draft.headers ? [draft.headers] : []),
    (headers) => {
      headers["content-type"] = "application/json; charset=utf-8";
    },
  ),
];

export const messageProfileMutations: readonly IllegalChange[] = [
  ...streams.map((mutation) => illegalMessageStream(mutation, true)),
  ...bodies.map((mutation) => illegalMessageBody(mutation, true)),
];

/** The same members, the last first. */
function reversed(object: Json): void {
  const entries = Object.entries(object).toReversed();
  for (const key of Object.keys(object)) delete object[key];
  for (const [key, value] of entries) object[key] = value;
}
