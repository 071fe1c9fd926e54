import { invalidRequest } from "../../core/failure.ts";
import type { FailureError } from "../../core/failure.ts";
import type { ServedEngine } from "../model-directory.ts";
import type { ModelState } from "./model-control.ts";

/** What every kind of engine tells of itself. */
export function stateOf({ name, engine }: ServedEngine): ModelState {
  const { state, message } = engine.health();
  return {
    name,
    models: engine.models().map(({ id }) => id),
    state,
    ...(message !== undefined && { message }),
  };
}

/** Of a model that is asked to be loaded or unloaded, and lives elsewhere. */
export function notOfThisMachine(name: string): FailureError {
  return invalidRequest(
    `The model '${name}' is none of this machine's files: it is neither loaded nor unloaded.`,
    "model",
  );
}
