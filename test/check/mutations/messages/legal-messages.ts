import { judge } from "../../../../src/judge/check/rules/judge.ts";
import { legalMessageBody, legalMessageStream } from "../../legal/messages.ts";
import { between, oneOf, seeded } from "../../random.ts";
import { type BodyDraft, bodyDraftOf, bodyExchangeOf } from "../body/body-draft.ts";
import type { LegalChange } from "../mutation.ts";
import {
  blockOf,
  deltaOf,
  deltas,
  insertAfter,
  type Json,
  made,
  type MessageDraft,
  messageDraftOf,
  messageExchangeOf,
  ofType,
  starts,
} from "./message-draft.ts";

/** A change that leaves it legal. `exact`: also in the profile that it was written in. */
interface Legal<Draft> {
  readonly name: string;
  readonly exact: boolean;
  apply(draft: Draft, random: () => number): boolean;
}

const streams: readonly Legal<MessageDraft>[] = [
  {
    name: "pings anywhere",
    exact: true,
    apply(draft, random) {
      const places = draft.events.filter(({ data }) => data.type !== "error" && data.type !== "message_stop");
      for (const event of places) if (random() < 0.3) insertAfter(draft, event, made("ping"));
      return true;
    },
  },
  {
    name: "comments between events of a message",
    exact: true,
    apply(draft, random) {
      draft.rewrite = (body) =>
        body.replaceAll("\n\nevent", () => (random() < 0.5 ? "\n\n: hold\n\nevent" : "\n\nevent"));
      return true;
    },
  },
  {
    name: "text split over more deltas of a block",
    exact: true,
    apply(draft) {
      const event = deltas(draft, "text_delta").find((one) => String(deltaOf(one).text).length > 1);
      if (!event) return false;
      const second = structuredClone(event);
      const [head = "", ...tail] = String(deltaOf(event).text);
      deltaOf(event).text = head;
      deltaOf(second).text = tail.join("");
      insertAfter(draft, event, second);
      return true;
    },
  },
  {
    name: "an input split over more deltas",
    exact: true,
    apply(draft) {
      const event = deltas(draft, "input_json_delta").find((one) => String(deltaOf(one).partial_json).length > 1);
      if (!event) return false;
      const second = structuredClone(event);
      const json = String(deltaOf(event).partial_json);
      deltaOf(event).partial_json = json.slice(0, 1);
      deltaOf(second).partial_json = json.slice(1);
      insertAfter(draft, event, second);
      return true;
    },
  },
  {
    name: "other ids of a message and its calls",
    exact: false,
    apply(draft, random) {
      for (const { data } of ofType(draft, "message_start"))
        (data.message as Json).id = `msg_${oneOf(["vrtx_1", "bdrk_1", "1"], random)}`;
      for (const [at, event] of starts(draft, "tool_use").entries()) blockOf(event).id = `toolu_${at}`;
      return true;
    },
  },
  {
    name: "a usage that is told twice",
    exact: true,
    apply(draft) {
      const [ending] = ofType(draft, "message_delta");
      if (!ending) return false;
      insertAfter(draft, ending, structuredClone(ending));
      return true;
    },
  },
  {
    name: "bare counts at the end",
    exact: false,
    apply(draft) {
      const [ending] = ofType(draft, "message_delta");
      if (ending) ending.data.usage = { output_tokens: 40 };
      return ending !== undefined;
    },
  },
  {
    name: "members in another order, and further ones, in every event",
    exact: false,
    apply(draft, random) {
      for (const event of draft.events) {
        if (event.data.type === "ping") continue;
        const members = Object.entries({ ...event.data, [`x_${between(0, 9, random)}`]: { any: ["thing"] } });
        event.data = Object.fromEntries(members.toReversed());
      }
      return true;
    },
  },
  {
    name: "a request for a message that may be refused and is not",
    exact: true,
    apply(draft, random) {
      if (!draft.request) return false;
      draft.request.max_tokens = oneOf([0, -1, "9", null], random);
      if (draft.request.tools === undefined) draft.request.tool_choice = { type: oneOf(["any", "tool"], random) };
      return true;
    },
  },
  {
    name: "the request for a message is not known",
    exact: true,
    apply(draft) {
      draft.request = undefined;
      return true;
    },
  },
  {
    name: "the headers of a message are not known",
    exact: true,
    apply(draft) {
      draft.headers = null;
      return true;
    },
  },
];

const bodies: readonly Legal<BodyDraft>[] = [
  {
    name: "members of the Messages API in another order, and further ones",
    exact: false,
    apply(draft) {
      draft.value = Object.fromEntries(Object.entries({ ...draft.value, x_any: null }).toReversed());
      return true;
    },
  },
  {
    name: "other white space in the Messages API",
    exact: false,
    apply(draft, random) {
      draft.layout.indent = oneOf([1, 2, 4], random);
      draft.layout.end = oneOf(["", "\n", "\r\n"], random);
      return true;
    },
  },
  {
    name: "other words in a message",
    exact: true,
    apply(draft, random) {
      if (draft.endpoint !== "messages" || draft.status !== 200 || draft.request?.output_config) return false;
      const texts = (draft.value.content as Json[]).filter((block) => block.type === "text");
      for (const block of texts) block.text = oneOf(["Grüße 🦙", '{"a":1}', "null", "\u2028", "I think."], random);
      return texts.length > 0;
    },
  },
  {
    name: "another error of the Messages API",
    exact: true,
    apply(draft, random) {
      if (draft.status < 400) return false;
      const [status, type, message] = oneOf(
        [
          [400, "invalid_request_error", "prompt is too long: 3333404 tokens > 200000 maximum"],
          [413, "request_too_large", "Request exceeds the maximum size"],
          [429, "rate_limit_error", "This request would exceed your rate limit."],
          [529, "overloaded_error", "Overloaded"],
          [503, "overloaded_error", "Overloaded"],
        ] as const,
        random,
      );
      draft.status = status;
      draft.value.error = { type, message };
      return true;
    },
  },
  {
    name: "the request and the headers of the Messages API are not known",
    exact: true,
    apply(draft) {
      draft.request = undefined;
      draft.headers = null;
      return true;
    },
  },
];

export const legalMessages: readonly LegalChange[] = [
  ...streams.map(({ name, exact, apply }) => ({
    name,
    make(seed: number) {
      const { exchange, profile } = legalMessageStream(seed);
      const draft = messageDraftOf(exchange);
      if (!apply(draft, seeded(seed))) return undefined;
      return judge(messageExchangeOf(draft), exact ? profile.name : undefined).findings;
    },
  })),
  ...bodies.map(({ name, exact, apply }) => ({
    name,
    make(seed: number) {
      const { exchange, profile } = legalMessageBody(seed);
      const draft = bodyDraftOf(exchange);
      if (!apply(draft, seeded(seed))) return undefined;
      return judge(bodyExchangeOf(draft), exact ? profile.name : undefined).findings;
    },
  })),
];
