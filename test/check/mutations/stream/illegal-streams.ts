import { judge } from "../../../../src/check/rules/judge.ts";
import { legalStream } from "../../legal/stream.ts";
import { seeded } from "../../random.ts";
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

/** `demands`: what the stream was written in is demanded of it. */
export function illegalStream(mutation: StreamMutation, demands: boolean): IllegalChange {
  const { rule, name } = mutation;
  return {
    rule,
    name,
    make(seed) {
      const { exchange, profile } = legalStream(seed);
      const draft = draftOf(exchange);
      const before = JSON.stringify(exchangeOf(draft));
      if (!mutation.apply(draft, seeded(seed))) return undefined;
      const mutated = exchangeOf(draft);
      if (JSON.stringify(mutated) === before) return undefined;
      return judge(mutated, demands ? profile.name : undefined).findings;
    },
  };
}

export const illegalStreams: readonly IllegalChange[] = mutations.map((mutation) => illegalStream(mutation, false));
