import type { z } from "zod";
import { isObject } from "../../core/json.ts";
import type { Steps } from "../../core/steps.ts";
import { checkedInSteps } from "./shapes.ts";

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
