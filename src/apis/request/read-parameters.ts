import type { z } from "zod";
import { invalidRequest } from "../../core/failure.ts";
import type { Steps } from "../../core/steps.ts";
import { missingModel } from "../failures.ts";

import type { RequestDraft } from "./draft.ts";
import { issueFailure } from "./issue-failure.ts";
import { mostUnknown } from "./size-limits.ts";
import type { Parameter } from "./parameter.ts";
import { missingParameter, tooManyUnknown } from "./refusals.ts";
import { checkedForServer, unknownValue } from "./unknown-values.ts";

/**
 * Reads a request's body into `draft`, parameter by parameter in the table's order, so that the first complaint does not depend on
 * the order of the client's keys. A null is the same as no value, but for a required parameter. Members that no parameter claims go
 * to `draft.extra`, and so do those without effect here, and those that are refused where a server behind may take them
 * (`draft.forwards`).
 *
 * Returns the body, now known to be an object. Throws `FailureError`. Long lists are read in steps.
 */
export function* readParameters<Draft extends RequestDraft>(
  body: unknown,
  table: readonly Parameter<Draft>[],
  draft: Draft,
): Steps<Readonly<Record<string, unknown>>> {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw invalidRequest("Invalid type for the request body: expected an object.", null, "invalid_type");
  }
  const members = body as Readonly<Record<string, unknown>>;
  const { places, required } = indexOf(table);
  // A body has a few of the many parameters: these are looked up, and put into the table's order.
  const found = [...required];
  const unknown: string[] = [];
  for (const name of Object.keys(members)) {
    const place = places.get(name);
    if (place === undefined) unknown.push(name);
    else if (table[place]?.required === false) found.push(place);
  }
  found.sort((a, b) => a - b);
  for (const place of found) {
    const parameter = table[place];
    const rest = parameter && readOne(parameter, members[parameter.name], draft);
    if (rest) yield* rest;
  }
  if (unknown.length > mostUnknown) {
    throw tooManyUnknown();
  }
  for (const name of unknown) draft.extra[name] = members[name];
  return members;
}

interface TableIndex {
  /** Name → place in the table. */
  readonly places: ReadonlyMap<string, number>;
  /** The places of the parameters that a body must have. */
  readonly required: readonly number[];
}

/** What the index of a table needs of its entries. */
type Entries = readonly Pick<Parameter, "name" | "required">[];

const indices = new WeakMap<Entries, TableIndex>();

function indexOf(table: Entries): TableIndex {
  let index = indices.get(table);
  if (!index) {
    const places = new Map(table.map(({ name }, place) => [name, place]));
    index = { places, required: [...places.values()].filter((place) => table[place]?.required) };
    indices.set(table, index);
  }
  return index;
}

/** What takes long of it is left to be done. */
function readOne<Draft extends RequestDraft>(
  parameter: Parameter<Draft>,
  value: unknown,
  draft: Draft,
): Steps<void> | undefined {
  const { name, required, shape } = parameter;
  if (value === undefined || value === null) {
    if (!required) return undefined;
    if (name === "model") throw missingModel();
    if (value === undefined) throw missingParameter(name);
  }
  if (parameter.treatment === "refused" && draft.forwards) {
    draft.extra[name] = value;
    return undefined;
  }
  if (typeof value === "object") return readLong(parameter, value, draft);
  const checked = shape.safeParse(value);
  if (draft.forwards && !checked.success) return readLong(parameter, value, draft);
  return take(parameter, value, checked, draft);
}

function* readLong<Draft extends RequestDraft>(parameter: Parameter<Draft>, value: unknown, draft: Draft): Steps<void> {
  const { checked, unknown } = yield* checkedForServer(parameter.shape, value, draft.forwards);
  for (const place of unknown) draft.warnings.push(unknownValue(parameter.name, place));
  if (unknown.length > 0 && checked.success && checked.data === undefined) return;
  const rest = take(parameter, value, checked, draft);
  if (rest) yield* rest;
}

function take<Draft extends RequestDraft>(
  parameter: Parameter<Draft>,
  value: unknown,
  checked: z.ZodSafeParseResult<unknown>,
  draft: Draft,
): Steps<void> | undefined {
  const { name, treatment } = parameter;
  if (!checked.success) throw issueFailure(name, value, checked.error.issues);
  if (treatment === "accepted") draft.extra[name] = value;
  return parameter.read(checked.data, draft) ?? undefined;
}
