import { legalMessageStream } from "../../legal/messages.ts";
import { illegalChange } from "../draft-mutation.ts";
import type { IllegalChange } from "../mutation.ts";
import { messageDraftOf, messageExchangeOf, type MessageMutation } from "./message-draft.ts";
import { streamMutations } from "./streams.ts";

const drafting = { legal: legalMessageStream, draftOf: messageDraftOf, exchangeOf: messageExchangeOf };

/** `demands`: what the stream was written in is demanded of it. */
export function illegalMessageStream(mutation: MessageMutation, demands: boolean): IllegalChange {
  return illegalChange(mutation, drafting, demands);
}

export const illegalMessageStreams: readonly IllegalChange[] = streamMutations.map((mutation) =>
  illegalMessageStream(mutation, false),
);
