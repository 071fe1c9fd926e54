import { judge } from "../../../../src/check/rules/judge.ts";
import { legalMessageStream } from "../../legal/messages.ts";
import { seeded } from "../../random.ts";
import type { IllegalChange } from "../mutation.ts";
import { messageDraftOf, messageExchangeOf, type MessageMutation } from "./message-draft.ts";
import { streamMutations } from "./streams.ts";

/** `demands`: what the stream was written in is demanded of it. */
export function illegalMessageStream({ rule, name, apply }: MessageMutation, demands: boolean): IllegalChange {
  return {
    rule,
    name,
    make(seed) {
      const { exchange, profile } = legalMessageStream(seed);
      const draft = messageDraftOf(exchange);
      const before = JSON.stringify(messageExchangeOf(draft));
      if (!apply(draft, seeded(seed))) return undefined;
      const mutated = messageExchangeOf(draft);
      return JSON.stringify(mutated) === before
        ? undefined
        : judge(mutated, demands ? profile.name : undefined).findings;
    },
  };
}

export const illegalMessageStreams: readonly IllegalChange[] = streamMutations.map((mutation) =>
  illegalMessageStream(mutation, false),
);
