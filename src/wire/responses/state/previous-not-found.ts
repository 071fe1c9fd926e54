import type { FailureError } from "../../../generation/failure.ts";
import { invalidRequest } from "../../../generation/failure.ts";

export function previousNotFound(id: string): FailureError {
  return invalidRequest(
    `Previous response with id '${id}' not found.`,
    "previous_response_id",
    "previous_response_not_found",
  );
}
