import type { LlamaModel } from "node-llama-cpp";
import type { OpenConstraint } from "./token-constraint.ts";

/** Makes constraints for this model's choices. None can be enforced yet: the server refuses requests that need one, so none arrives. */
export function constraintOpener(_model: LlamaModel): OpenConstraint {
  return (plan) => {
    throw new Error(`No constraint can be enforced, not one that begins ${plan.begins}.`);
  };
}
