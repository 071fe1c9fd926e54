import { type BodyDraft, bodyDraftOf, bodyExchangeOf } from "../body/body-draft.ts";
import type { Exchange } from "../../../../src/judge/check/rules/exchange.ts";
import type { Profile } from "../../../../src/wire/apis/profile.ts";
import { legalMessageBody, legalMessageStream } from "../../legal/messages.ts";
import { seeded } from "../../random.ts";
import {
  blockOf,
  deltaOf,
  deltas,
  hasFailed,
  type Json,
  type MessageDraft,
  messageDraftOf,
  messageExchangeOf,
  ofType,
  starts,
} from "./message-draft.ts";

/** A message that a mutation can change, whether it was streamed or not. */
export interface Told {
  readonly isStream: boolean;
  readonly request: Json | undefined;
  /** Where its id, role and model stand. */
  readonly message: Json;
  /** Where its stop_reason stands; undefined in a stream that failed. */
  readonly ending: Json | undefined;
  /** Its last usage. */
  readonly usage: Json | undefined;
  readonly calls: readonly Json[];
  readonly thoughts: readonly Json[];
  /** The objects with a piece of its text, in order. */
  readonly texts: readonly Json[];
  /** The blocks of a body. */
  readonly content: Json[];
  readonly write: () => Exchange;
}

/** A random message; undefined where the seed gives none. */
export function toldBy(seed: number): { readonly told: Told; readonly profile: Profile } | undefined {
  if (seeded(seed)() < 0.5) {
    const { exchange, profile } = legalMessageStream(seed);
    return { told: streamTold(messageDraftOf(exchange)), profile };
  }
  const { exchange, profile } = legalMessageBody(seed);
  if (exchange.endpoint !== "messages" || exchange.response.status !== 200) return undefined;
  return { told: bodyTold(bodyDraftOf(exchange)), profile };
}

function streamTold(draft: MessageDraft): Told {
  const [start] = ofType(draft, "message_start");
  const [end] = hasFailed(draft) ? [] : ofType(draft, "message_delta");
  return {
    isStream: true,
    request: draft.request,
    message: (start?.data.message ?? {}) as Json,
    ending: end && deltaOf(end),
    usage: end && (end.data.usage as Json),
    calls: starts(draft, "tool_use").map(blockOf),
    thoughts: starts(draft, "thinking").map(blockOf),
    texts: deltas(draft, "text_delta").map(deltaOf),
    content: [],
    write: () => messageExchangeOf(draft),
  };
}

function bodyTold(draft: BodyDraft): Told {
  const { value, request } = draft;
  const content = value.content as Json[];
  const ofType = (type: string) => content.filter((block) => block.type === type);
  return {
    isStream: false,
    request,
    message: value,
    ending: value,
    usage: value.usage as Json,
    calls: ofType("tool_use"),
    thoughts: ofType("thinking"),
    texts: ofType("text"),
    content,
    write: () => bodyExchangeOf(draft),
  };
}
