import { invalidRequest } from "../../../core/failure.ts";
import type { Sampling } from "../../../core/request.ts";

/**
 * How much of each of a model's adapters is used, by their ids, as a text: "1,0.5"; "" for a model without adapters. What was evaluated
 * with other adapters is of no use, and cannot be evaluated in the same pass.
 */
export type AdapterScales = string;

/**
 * What a request asks for; `own` is used where it does not say. Adapters that it does not name are not used, as in llama.cpp's server.
 * Throws FailureError.
 */
export function askedScales(asked: Sampling["adapters"], own: readonly number[]): AdapterScales {
  if (asked === undefined) return own.join();
  const scales = own.map(() => 0);
  for (const [at, { id, scale }] of asked.entries()) {
    if (id < scales.length) scales[id] = scale;
    else
      throw invalidRequest(
        `Invalid value for 'lora[${at}].id': the model has ${scales.length} adapters, which are numbered from 0.`,
        `lora[${at}].id`,
        "invalid_value",
      );
  }
  return scales.join();
}
