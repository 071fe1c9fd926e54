import { legalBody } from "../../legal/body.ts";
import { illegalChange } from "../draft-mutation.ts";
import type { IllegalChange } from "../mutation.ts";
import { answerMutations } from "./answers.ts";
import { bodyDraftOf, bodyExchangeOf } from "./body-draft.ts";
import { callMutations } from "./calls.ts";
import type { BodyMutation } from "./on-body.ts";
import { obedienceMutations } from "./obedience.ts";
import { otherMutations } from "./others.ts";

const drafting = { legal: legalBody, draftOf: bodyDraftOf, exchangeOf: bodyExchangeOf };

/** `demands`: what the body was written in is demanded of it. */
export function illegalBody(mutation: BodyMutation, demands: boolean): IllegalChange {
  return illegalChange(mutation, drafting, demands);
}

export const illegalBodies: readonly IllegalChange[] = [
  ...answerMutations,
  ...callMutations,
  ...obedienceMutations,
  ...otherMutations,
].map((mutation) => illegalBody(mutation, false));
