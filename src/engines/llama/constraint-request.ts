import type { Format } from "../../formats/format.ts";
import { invalidRequest } from "../../generation/failure.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import type { ConstraintPlan } from "./constraint-plan.ts";

/**
 * What a request's answer must be held to; undefined: to nothing. Throws FailureError (`unsupported_value`) for what cannot be enforced:
 * a constraint is never ignored.
 */
export function constraintOf(request: GenerationRequest, _format: Format): ConstraintPlan | undefined {
  const { output, toolChoice } = request;
  if (output && output.type !== "text")
    throw unsupported(`response_format of type '${output.type}'`, "response_format");
  const forced =
    toolChoice?.type === "required" ||
    toolChoice?.type === "named" ||
    (toolChoice?.type === "allowed" && toolChoice.mode === "required");
  if (forced) throw unsupported("a tool_choice that forces a call", "tool_choice");
  if (toolChoice?.type !== "none" && request.tools?.some((tool) => tool.strict))
    throw unsupported("tools with strict: true", "tools");
  return undefined;
}

function unsupported(what: string, param: string): Error {
  return invalidRequest(`Unsupported value: this model does not support ${what}.`, param, "unsupported_value");
}
