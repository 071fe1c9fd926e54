import { legalStream } from "../../legal/stream.ts";
import { illegalChange } from "../draft-mutation.ts";
import type { IllegalChange } from "../mutation.ts";
import { deltaMutations } from "./deltas.ts";
import { envelopeMutations } from "./envelope.ts";
import { errorMutations } from "./errors.ts";
import { finishMutations } from "./finish.ts";
import { framingMutations } from "./framing.ts";
import { logprobMutations } from "./logprobs.ts";
import { obedienceMutations } from "./obedience.ts";
import { obfuscationMutations } from "./obfuscation.ts";
import type { StreamMutation } from "./on-stream.ts";
import { specificationMutations } from "./specification.ts";
import { draftOf, exchangeOf } from "./stream-draft.ts";
import { toolMutations } from "./tools.ts";
import { usageMutations } from "./usage.ts";

const mutations: readonly StreamMutation[] = [
  ...specificationMutations,
  ...framingMutations,
  ...envelopeMutations,
  ...obfuscationMutations,
  ...deltaMutations,
  ...toolMutations,
  ...finishMutations,
  ...usageMutations,
  ...logprobMutations,
  ...errorMutations,
  ...obedienceMutations,
];

const drafting = { legal: legalStream, draftOf, exchangeOf };

/** `demands`: what the stream was written in is demanded of it. */
export function illegalStream(mutation: StreamMutation, demands: boolean): IllegalChange {
  return illegalChange(mutation, drafting, demands);
}

export const illegalStreams: readonly IllegalChange[] = mutations.map((mutation) => illegalStream(mutation, false));
