import { invalidRequest } from "../../generation/failure.ts";
import { missingModel } from "../failures.ts";
import type { RequestDraft } from "./draft.ts";
import { issueFailure } from "./issue-failure.ts";
import type { Parameter } from "./parameter.ts";
import { missingParameter } from "./refusals.ts";

/**
 * Reads a request's body into `draft`, parameter by parameter in the table's order, so that the first complaint does not depend on
 * the order of the client's keys. A null is the same as no value, but for a required parameter. Members that no parameter claims go
 * to `draft.extra`, and so do those that are refused here where a server behind may take them (`draft.forwards`).
 *
 * Returns the body, now known to be an object. Throws `FailureError`.
 */
export function readParameters(
  body: unknown,
  table: readonly Parameter[],
  draft: RequestDraft,
): Readonly<Record<string, unknown>> {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw invalidRequest("Invalid type for the request body: expected an object.", null, "invalid_type");
  }
  const members = body as Readonly<Record<string, unknown>>;
  const known = new Set<string>();
  for (const parameter of table) {
    known.add(parameter.name);
    readOne(parameter, members[parameter.name], draft);
  }
  for (const [name, value] of Object.entries(members)) if (!known.has(name)) draft.extra[name] = value;
  return members;
}

function readOne(parameter: Parameter, value: unknown, draft: RequestDraft): void {
  const { name, required, shape } = parameter;
  if (value === undefined || value === null) {
    if (!required) return;
    if (name === "model") throw missingModel();
    if (value === undefined) throw missingParameter(name);
  }
  if (parameter.treatment === "refused" && draft.forwards) {
    draft.extra[name] = value;
    return;
  }
  const checked = shape.safeParse(value);
  if (!checked.success) throw issueFailure(name, value, checked.error.issues);
  parameter.read(checked.data, draft);
}
