import { FailureError } from "../core/failure.ts";
import type { ModelView } from "./model-directory.ts";

/**
 * The failure for a model that the directory does not have. While a server behind this one has not told its models yet, nobody knows
 * whether it has this one: 503, and the client may ask again. Else `otherwise`.
 */
export function unknownModel(name: string, directory: ModelView, otherwise: FailureError): FailureError {
  if (!directory.mayCome(name)) return otherwise;
  return new FailureError({
    kind: "unavailable",
    message: `The model '${name}' is not there now. It may be one of a server that does not answer yet. Please try again later.`,
    status: 503,
    param: null,
    code: "model_not_available",
    model: name,
    retryAfterSeconds: 5,
  });
}
