import { judge } from "../../../../src/check/rules/judge.ts";
import { legalBody } from "../../legal/body.ts";
import { seeded } from "../../random.ts";
import type { IllegalChange } from "../mutation.ts";
import { answerMutations } from "./answers.ts";
import { bodyDraftOf, bodyExchangeOf } from "./body-draft.ts";
import { callMutations } from "./calls.ts";
import type { BodyMutation } from "./on-body.ts";
import { obedienceMutations } from "./obedience.ts";
import { otherMutations } from "./others.ts";

/** `demands`: what the body was written in is demanded of it. */
export function illegalBody(mutation: BodyMutation, demands: boolean): IllegalChange {
  const { rule, name } = mutation;
  return {
    rule,
    name,
    make(seed) {
      const { exchange, profile } = legalBody(seed);
      const draft = bodyDraftOf(exchange);
      const before = JSON.stringify(bodyExchangeOf(draft));
      if (!mutation.apply(draft, seeded(seed))) return undefined;
      const mutated = bodyExchangeOf(draft);
      if (JSON.stringify(mutated) === before) return undefined;
      return judge(mutated, demands ? profile.name : undefined).findings;
    },
  };
}

export const illegalBodies: readonly IllegalChange[] = [
  ...answerMutations,
  ...callMutations,
  ...obedienceMutations,
  ...otherMutations,
].map((mutation) => illegalBody(mutation, false));
