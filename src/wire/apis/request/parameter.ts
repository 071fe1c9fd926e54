import type * as z from "zod";
import { namesNear } from "../../core/nearest.ts";
import type { FailureError } from "../../core/failure.ts";
import type { Steps } from "../../core/steps.ts";
import type { RequestDraft } from "./draft.ts";
import { missingModel } from "../failures.ts";
import { missingParameter, objectBody, parameterFailure, tooManyUnknown, unknownParameter } from "./refusals.ts";
import { refuseOrWarn, wouldAnswer } from "./vendor-rules.ts";
import { checkedInSteps, maxUnknownMembers } from "./shapes.ts";
import { isObject } from "../../core/json.ts";
import { membersOf } from "../members.ts";

/**
 * One parameter of a request: its schema, its effect and its documentation. docs/parameters.md is generated from these.
 */
export interface RequestParameter<Draft extends RequestDraft = RequestDraft> {
  readonly name: string;
  /** The names of the APIs that have it. */
  readonly endpoints: readonly string[];
  /**
   * - honoured: it does what its documentation says
   * - accepted: it is validated and has no effect, which is harmless
   * - refused: it is not supported, and ignoring it would give another answer than the requested one
   */
  readonly treatment: "honoured" | "accepted" | "refused";
  /** Whether OpenAI documents it, or other servers have added it. */
  readonly origin: "openai" | "extension";
  /** An extension of this server alone, which profile `exact` has, too. It refuses those of other servers, as OpenAI does. */
  readonly isOwn?: true;
  /** For the documentation: what it does here, in addition to OpenAI's documentation. */
  readonly note: string;
  readonly required: boolean;
  /** Checks a value, which is never null. `issueFailure` makes an error of an issue. */
  readonly shape: z.ZodType;
  /** Puts a value that has passed `shape` into the draft, a long one in steps. Throws `FailureError` for what a schema cannot express. */
  readonly read: (value: unknown, draft: Draft) => Steps<void> | void;
  /** Called in place of `read` for a value that is refused here and forwarded. It may have any form. */
  readonly readForwarded?: (value: unknown, draft: Draft) => void;
}

interface ParameterOptions<T> {
  readonly endpoints?: readonly string[];
  readonly note?: string;
  readonly shape: z.ZodType<T>;
}

const both: readonly string[] = ["chat", "completions"];

/** A parameter of OpenAI that is supported. */
export function supportedParameter<T, Draft extends RequestDraft = RequestDraft>(
  name: string,
  options: ParameterOptions<T> & { readonly required?: boolean },
  read: (value: T, draft: Draft) => Steps<void> | void,
): RequestParameter<Draft> {
  return parameter(name, "honoured", "openai", options, read);
}

/** A parameter of other servers that is supported. */
export function extensionParameter<T, Draft extends RequestDraft = RequestDraft>(
  name: string,
  options: ParameterOptions<T>,
  read: (value: T, draft: Draft) => void,
): RequestParameter<Draft> {
  return parameter(name, "honoured", "extension", options, read);
}

/** Returns a parameter as one of other servers: OpenAI has it in another API only. */
export function asExtension<Draft extends RequestDraft>(parameter: RequestParameter<Draft>): RequestParameter<Draft> {
  return { ...parameter, origin: "extension" };
}

/** A parameter that only this server has. */
export function ownParameter<T, Draft extends RequestDraft = RequestDraft>(
  name: string,
  options: ParameterOptions<T>,
  read: (value: T, draft: Draft) => void,
): RequestParameter<Draft> {
  return { ...parameter(name, "honoured", "extension", options, read), isOwn: true };
}

/** A parameter without effect. `check` throws for what its schema cannot express. */
export function acceptedParameter<T, Draft extends RequestDraft = RequestDraft>(
  name: string,
  options: ParameterOptions<T>,
  check: (value: T, draft: Draft) => void = () => {},
): RequestParameter<Draft> {
  return parameter(name, "accepted", "openai", options, check);
}

/** A parameter that is refused: `read` throws, unless the value has no effect anyway. */
export function refusedParameter<T, Draft extends RequestDraft = RequestDraft>(
  name: string,
  origin: "openai" | "extension",
  options: ParameterOptions<T>,
  read: (value: T, draft: Draft) => void,
): RequestParameter<Draft> {
  return parameter(name, "refused", origin, options, read);
}

function parameter<T, Draft extends RequestDraft>(
  name: string,
  treatment: RequestParameter["treatment"],
  origin: RequestParameter["origin"],
  { endpoints = both, note = "", shape, required = false }: ParameterOptions<T> & { readonly required?: boolean },
  read: (value: T, draft: Draft) => Steps<void> | void,
): RequestParameter<Draft> {
  // `shape` has checked the value; only this cast relies on it.
  return { name, endpoints, treatment, origin, note, required, shape, read: (value, draft) => read(value as T, draft) };
}

type DraftPart = "request" | "asked" | "sampling" | "xtc" | "dry" | "limits" | "template";

/** Returns a `read` that sets one member of a part of the draft to the value. */
export function setMember<Part extends DraftPart, Name extends keyof RequestDraft[Part]>(
  part: Part,
  name: Name,
): (value: NonNullable<RequestDraft[Part][Name]>, draft: RequestDraft) => void {
  return (value, draft) => {
    draft[part][name] = value;
  };
}

/** Returns a `read` that sets a member of the draft itself to the value. */
export function setDraftMember<Name extends keyof RequestDraft>(
  name: Name,
): (value: NonNullable<RequestDraft[Name]>, draft: RequestDraft) => void {
  return (value, draft) => {
    draft[name] = value;
  };
}

/**
 * Reads the body of a request into `draft`, in the order of the table, so that the first error does not depend on the order of the client's
 * keys. A `null` counts as absent, except for a required parameter. `draft.extra` gets the members that are not in the table, those without
 * effect, and, with `draft.forwards`, those that are refused here. Long lists are read in steps.
 *
 * Profile `exact` refuses members that OpenAI does not have before it reads any value: as OpenAI, after missing required members (measured
 * on 2026-08-30: kangminlee-maker/local-OAuth-CLI-API-adapter, docs/conformance-matrix.md, 5.5.5 and 5.5.6).
 *
 * Returns the body. Throws `FailureError` (400).
 */
export function* readParameters<Draft extends RequestDraft>(
  body: unknown,
  table: readonly RequestParameter<Draft>[],
  draft: Draft,
  { refusalOf = () => undefined, checkNames = () => undefined }: NameChecks = {},
): Steps<Readonly<Record<string, unknown>>> {
  const members = withoutNoLimit(objectBody(body), draft);
  const { places, required, vendors } = indexOf(table);
  const { profile, forwards, warnings, extra } = draft;
  const refusal = (name: string): FailureError =>
    refusalOf(name) ??
    unknownParameter(
      name,
      namesNear(name, vendors).filter((known) => !(known in members)),
    );
  // A body has few of the many parameters: they are looked up, and kept in the order of the table.
  const found = [...required];
  const others: string[] = [];
  let refused: string | undefined;
  for (const name of Object.keys(members)) {
    const place = places.get(name);
    if (place === undefined) others.push(name);
    else if (table[place]?.required === false) insert(found, place);
    if (!isVendors(table[place ?? table.length])) refused ??= name;
  }
  for (const place of required) if (table[place]) requirePresent(table[place].name, members, draft.endpoint);
  if (others.length > maxUnknownMembers) throw tooManyUnknown();
  if (refused !== undefined && profile.judgesAsVendor && !forwards) throw refusal(refused);
  const judged = forwards ? undefined : checkNames(members);
  if (judged) refuseOrWarn(judged, "OpenAI", draft);
  for (const place of found) {
    const parameter = table[place];
    const rest = parameter && readParameter(parameter, members[parameter.name], draft);
    if (rest) yield* rest;
  }
  for (const name of others) {
    extra[name] = members[name];
    if (!forwards) warnings.push(wouldAnswer(refusal(name), "OpenAI"));
  }
  return members;
}

function isVendors(parameter: Pick<RequestParameter, "origin" | "isOwn"> | undefined): boolean {
  return parameter?.origin === "openai" || parameter?.isOwn === true;
}

/** What OpenAI checks of the members' names. */
export interface NameChecks {
  /** Returns the error for an unknown member, if it is not the usual one. */
  readonly refusalOf?: (name: string) => FailureError | undefined;
  /** Returns the error for members that the requested model does not have. */
  readonly checkNames?: (members: Readonly<Record<string, unknown>>) => FailureError | undefined;
}

/** Throws `FailureError` for a required member that is missing. */
function requirePresent(name: string, members: Readonly<Record<string, unknown>>, endpoint: string): void {
  const value = members[name] ?? undefined;
  if (value !== undefined) return;
  if (name === "model" && endpoint !== "responses") throw missingModel();
  if (members[name] === undefined) throw missingParameter(name);
}

/** The members that limit an answer, in each API of OpenAI. */
const limitNames = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

/**
 * LM Studio, llama.cpp and KoboldCpp read a limit of -1 as none, and clients that were written for them send it. Other servers refuse it, so
 * it is left out in profile `lean`; of legacy completions, where an absent limit means 16 tokens, it becomes `null`.
 */
function withoutNoLimit<Draft extends RequestDraft>(
  members: Readonly<Record<string, unknown>>,
  draft: Draft,
): Readonly<Record<string, unknown>> {
  const names = draft.profile.judgesAsVendor ? [] : limitNames.filter((name) => members[name] === -1);
  if (names.length === 0) return members;
  const others = { ...members };
  for (const name of names) {
    if (draft.endpoint === "completions") others[name] = null;
    else delete others[name];
  }
  draft.maxTokens = Infinity;
  return others;
}

/** Returns a table in the vendor's order of checks. The parameters that `order` does not name follow. */
export function inOrder<Parameter extends { readonly name: string }>(
  table: readonly Parameter[],
  order: readonly string[],
): readonly Parameter[] {
  const place = ({ name }: Parameter): number => (order.includes(name) ? order.indexOf(name) : order.length);
  return table.toSorted((a, b) => place(a) - place(b));
}

/** Inserts a number into an ascending list. A list is as long as a table at most. */
function insert(list: number[], value: number): void {
  let at = list.length;
  for (; at > 0 && (list[at - 1] ?? 0) > value; at--) list[at] = list[at - 1] ?? 0;
  list[at] = value;
}

interface TableIndex {
  /** Name → place in the table. */
  readonly places: ReadonlyMap<string, number>;
  /** The places of the required parameters. */
  readonly required: readonly number[];
  /** The names that OpenAI has. */
  readonly vendors: readonly string[];
}

type Entries = readonly Pick<RequestParameter, "name" | "required" | "origin">[];

const indices = new WeakMap<Entries, TableIndex>();

function indexOf(table: Entries): TableIndex {
  let index = indices.get(table);
  if (!index) {
    const places = new Map(table.map(({ name }, place) => [name, place]));
    const vendors = table.flatMap(({ name, origin }) => (origin === "openai" ? [name] : []));
    index = { places, required: [...places.values()].filter((place) => table[place]?.required), vendors };
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
  if ((value === undefined || value === null) && !required) return undefined;
  if (parameter.treatment === "refused" && draft.forwards) {
    draft.extra[name] = value;
    parameter.readForwarded?.(value, draft);
    return undefined;
  }
  if (!isShort(value)) return readInSteps(parameter, value, draft);
  const checked = shape.safeParse(value);
  if (draft.forwards && !checked.success) return readInSteps(parameter, value, draft);
  return take(parameter, value, checked, draft);
}

/** Values inside one value that are checked without steps. */
const maxShort = 64;

/** Whether checking a value takes so little time that it needs no steps. */
function isShort(value: unknown): boolean {
  return valuesLeft(value, maxShort) >= 0;
}

/** Returns `budget` without the number of values inside `value`; negative if there are more. Ends as soon as it is negative. */
function valuesLeft(value: unknown, budget: number): number {
  if (typeof value !== "object" || value === null) return budget - 1;
  let left = budget - 1;
  for (const name in value) {
    left = valuesLeft((value as Readonly<Record<string, unknown>>)[name], left);
    if (left < 0) break;
  }
  return left;
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

/**
 * Checks the members of a body that `schema` lists, in its order. A `null` counts as absent. Returns the checked members, and all others as
 * they are. Throws `FailureError` (400).
 */
export function checkedMembers<Schema extends z.ZodObject>(
  schema: Schema,
  body: Readonly<Record<string, unknown>>,
): { readonly read: z.infer<Schema>; readonly others: Record<string, unknown> } {
  const read: Record<string, unknown> = {};
  const others = { ...body };
  for (const { name, schema: member, always } of membersOf(schema)) {
    const value = body[name] ?? undefined;
    delete others[name];
    if (value === undefined && always) throw missingParameter(name);
    const checked = member.safeParse(value);
    if (!checked.success) throw parameterFailure(name, value, checked.error.issues);
    if (checked.data !== undefined) read[name] = checked.data;
  }
  return { read: read as z.infer<Schema>, others };
}

/** The result of a check for a server of the same API. */
export interface CheckedForServer {
  readonly checked: z.ZodSafeParseResult<unknown>;
  /** The paths, within the value, of strings that only the server may know. */
  readonly unknown: readonly Path[];
}

type Path = readonly PropertyKey[];

/** More unknown strings than a request to a newer version of the API has. */
const maxUnknown = 16;

/**
 * Checks a value as `checkedInSteps`. With `forwards`, the request is forwarded as it came to a server of the same API. Then an unknown
 * string is left out of the checked value, and the server judges it: APIs get new values before this server knows them.
 */
export function* checkedForServer(shape: z.ZodType, value: unknown, forwards: boolean): Steps<CheckedForServer> {
  let checked = yield* checkedInSteps(shape, value);
  if (!forwards) return { checked, unknown: [] };
  const unknown: Path[] = [];
  let rest = value;
  while (!checked.success && unknown.length < maxUnknown) {
    const path = unknownString(checked.error.issues, rest);
    if (!path) break;
    unknown.push(path);
    rest = without(rest, path);
    checked = rest === undefined ? { success: true, data: undefined } : yield* checkedInSteps(shape, rest);
  }
  return { checked, unknown };
}

/** Returns the warning for a value that only the upstream may know. */
export function unknownValue(name: string, path: Path): string {
  return `${[name, ...path].map(String).join(".")}: the value is not known here; the upstream gets it`;
}

/** Returns the path of a string for which the schema expects another one, if that is the first issue. */
function unknownString(issues: readonly z.core.$ZodIssue[], value: unknown): Path | undefined {
  const [issue] = issues;
  if (issue === undefined || (issue.code !== "invalid_value" && issue.code !== "invalid_union")) return undefined;
  if (issue.code === "invalid_union" && issue.discriminator === undefined) return undefined;
  return typeof valueAt(value, issue.path) === "string" ? issue.path : undefined;
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce((inner: unknown, key) => (isObject(inner) ? inner[String(key)] : undefined), value);
}

/** Returns the value without the member at a path, or without the object whose `type` that is; `undefined` if nothing is left. */
function without(value: unknown, path: Path): unknown {
  const [key, ...rest] = path;
  if (key === undefined || !isObject(value)) return undefined;
  if (key === "type" && rest.length === 0) return undefined;
  const inner = without(value[String(key)], rest);
  const { [String(key)]: _, ...others } = value;
  return inner === undefined ? others : { ...others, [String(key)]: inner };
}
