import type { z } from "zod";
import { isObject } from "../../core/json.ts";
import type { Steps } from "../../core/steps.ts";
import { checkedInSteps } from "./shapes.ts";

/** What a check for a server of the same API found. */
export interface CheckedForServer {
  readonly checked: z.ZodSafeParseResult<unknown>;
  /** The places of values that only the server may know: paths within the value. */
  readonly unknown: readonly Path[];
}

type Path = readonly PropertyKey[];

/** More unknown values than a request of a newer API has. */
const maxUnknown = 16;

/**
 * Checks a value as `checkedInSteps`. Where the request continues as it came to a server of the same API (`forwards`), an unknown word
 * is left out of what is read, and that server judges it: APIs get new words before this server learns them.
 */
export function* checkedForServer(shape: z.ZodType, value: unknown, forwards: boolean): Steps<CheckedForServer> {
  let checked = yield* checkedInSteps(shape, value);
  if (!forwards) return { checked, unknown: [] };
  const unknown: Path[] = [];
  let rest = value;
  while (!checked.success && unknown.length < maxUnknown) {
    const path = unknownWord(checked.error.issues, rest);
    if (!path) break;
    unknown.push(path);
    rest = without(rest, path);
    checked = rest === undefined ? { success: true, data: undefined } : yield* checkedInSteps(shape, rest);
  }
  return { checked, unknown };
}

/** The warning for a value that only the upstream may know. */
export function unknownValue(name: string, path: Path): string {
  return `${[name, ...path].map(String).join(".")}: the value is not known here; the upstream gets it`;
}

/** The place of a word where another one was expected, if the first issue is about that. */
function unknownWord(issues: readonly z.core.$ZodIssue[], value: unknown): Path | undefined {
  const [issue] = issues;
  if (issue === undefined || (issue.code !== "invalid_value" && issue.code !== "invalid_union")) return undefined;
  if (issue.code === "invalid_union" && issue.discriminator === undefined) return undefined;
  return typeof valueAt(value, issue.path) === "string" ? issue.path : undefined;
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce((inner: unknown, key) => (isObject(inner) ? inner[String(key)] : undefined), value);
}

/** The value without the member at a path; without the whole object where the member is its `type`. undefined: nothing is left. */
function without(value: unknown, path: Path): unknown {
  const [key, ...rest] = path;
  if (key === undefined || !isObject(value)) return undefined;
  if (key === "type" && rest.length === 0) return undefined;
  const inner = without(value[String(key)], rest);
  const { [String(key)]: _, ...others } = value;
  return inner === undefined ? others : { ...others, [String(key)]: inner };
}
