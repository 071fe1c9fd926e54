import type { FailureError } from "../../../core/failure.ts";
import { invalidRequest } from "../../../core/failure.ts";

export function previousNotFound(id: string): FailureError {
  return invalidRequest(
    `Previous response with id '${id}' not found.`,
    "previous_response_id",
    "previous_response_not_found",
  );
}
