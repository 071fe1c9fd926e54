import type { z } from "zod";
import type { Steps } from "../../core/steps.ts";
import { missingModel } from "../failures.ts";
import type { RequestDraft } from "./draft.ts";
import { parameterFailure } from "./issue-failure.ts";
import type { RequestParameter } from "./parameter.ts";
import { missingParameter, objectBody, tooManyUnknown } from "./refusals.ts";
import { maxUnknownMembers } from "./size-limits.ts";
import { checkedForServer, unknownValue } from "./unknown-values.ts";

/**
 * Reads the body of a request into `draft`, in the order of the table, so that the first error does not depend on the order of the client's
 * keys. A `null` counts as absent, except for a required parameter. `draft.extra` gets the members that are not in the table, those without
 * effect, and, with `draft.forwards`, those that are refused here. Long lists are read in steps.
 *
 * Returns the body. Throws `FailureError` (400).
 */
export function* readParameters<Draft extends RequestDraft>(
  body: unknown,
  table: readonly RequestParameter<Draft>[],
  draft: Draft,
): Steps<Readonly<Record<string, unknown>>> {
  const members = objectBody(body);
  const { places, required } = indexOf(table);
  // A body has few of the many parameters: they are looked up, and sorted by their place in the table.
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
    const rest = parameter && readParameter(parameter, members[parameter.name], draft);
    if (rest) yield* rest;
  }
  if (unknown.length > maxUnknownMembers) throw tooManyUnknown();
  for (const name of unknown) draft.extra[name] = members[name];
  return members;
}

interface TableIndex {
  /** Name → place in the table. */
  readonly places: ReadonlyMap<string, number>;
  /** The places of the required parameters. */
  readonly required: readonly number[];
}

type Entries = readonly Pick<RequestParameter, "name" | "required">[];

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

/** Reads one parameter. Returns the rest of the work if it is long. */
function readParameter<Draft extends RequestDraft>(
  parameter: RequestParameter<Draft>,
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
  if (typeof value === "object") return readInSteps(parameter, value, draft);
  const checked = shape.safeParse(value);
  if (draft.forwards && !checked.success) return readInSteps(parameter, value, draft);
  return take(parameter, value, checked, draft);
}

function* readInSteps<Draft extends RequestDraft>(
  parameter: RequestParameter<Draft>,
  value: unknown,
  draft: Draft,
): Steps<void> {
  const { checked, unknown } = yield* checkedForServer(parameter.shape, value, draft.forwards);
  for (const path of unknown) draft.warnings.push(unknownValue(parameter.name, path));
  if (unknown.length > 0 && checked.success && checked.data === undefined) return;
  const rest = take(parameter, value, checked, draft);
  if (rest) yield* rest;
}

function take<Draft extends RequestDraft>(
  parameter: RequestParameter<Draft>,
  value: unknown,
  checked: z.ZodSafeParseResult<unknown>,
  draft: Draft,
): Steps<void> | undefined {
  const { name, treatment } = parameter;
  if (!checked.success) throw parameterFailure(name, value, checked.error.issues);
  if (treatment === "accepted") draft.extra[name] = value;
  return parameter.read(checked.data, draft) ?? undefined;
}
