import type * as z from "zod";
import type { FailureError } from "../../core/failure.ts";
import { invalidRequest } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import { integerWords, rangeMark } from "./request-schema.ts";

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

interface Finding {
  readonly path: Path;
  readonly words: string;
}

/**
 * Returns the refusal of a request's member in Anthropic's words: the path with dots and the tags of the unions in it
 * (`messages.0.content.1.tool_result.tool_use_id`), a colon, and the words of Anthropic's validator. Only the first issue counts.
 * Source: recordings of 2025 and 2026, and messages quoted in issue threads.
 */
export function messageIssueFailure(name: string, value: unknown, issues: readonly Issue[]): FailureError {
  const [issue] = issues;
  const { path, words } = issue ? findingOf(issue, [], value) : unshaped([]);
  return refusal(pathText(name, value, path), words);
}

/** Returns a 400 in Anthropic's form: `path: words`. */
export function refusal(path: string, words: string): FailureError {
  return invalidRequest(`${path}: ${words}`, path);
}

function findingOf(issue: Issue, before: Path, root: unknown): Finding {
  const path = [...before, ...issue.path];
  const value = valueAt(root, path);
  switch (issue.code) {
    case "unrecognized_keys":
      return { path: [...path, issue.keys[0] ?? ""], words: "Extra inputs are not permitted" };
    case "invalid_union":
      return value === undefined ? missing(path) : ofUnion(issue, path, value, root);
    case "invalid_type":
      return value === undefined ? missing(path) : { path, words: typeWords(issue) };
    case "invalid_value":
      return value === undefined
        ? missing(path)
        : { path, words: `Input should be ${alternatives(issue.values.map(String))}` };
    case "too_small":
      if (issue.origin === "string") return { path, words: "String should have at least 1 character" };
      return outOfRange(issue, path, `greater than or equal to ${issue.minimum}`);
    case "too_big": {
      if (issue.origin !== "array") return outOfRange(issue, path, `less than or equal to ${issue.maximum}`);
      const length = Array.isArray(value) ? value.length : 0;
      return { path, words: `List should have at most ${issue.maximum} items after validation, not ${length}` };
    }
    case "invalid_format": {
      const pattern = String(issue.pattern ?? "").replace(/^\/|\/[a-z]*$/g, "");
      return { path, words: `String should match pattern '${pattern}'` };
    }
    default:
      return unshaped(path);
  }
}

function ofUnion(issue: Extract<Issue, { code: "invalid_union" }>, path: Path, value: unknown, root: unknown): Finding {
  if (issue.discriminator !== undefined && "options" in issue) {
    const tags = (issue.options ?? []).map(String);
    if (issue.discriminator === "role") return { path, words: `Input should be ${alternatives(tags)}` };
    // Only strings are converted: `String` would call an object's own `toString`.
    const tag = typeof value === "string" ? value : JSON.stringify(value);
    const expected = tags
      .map((one) => `'${one}'`)
      .toSorted()
      .join(", ");
    const words = `Input tag '${tag}' found using '${issue.discriminator}' does not match any of the expected tags: ${expected}`;
    return { path: path.slice(0, -1), words };
  }
  // The option that matches deepest is the intended one. Of two that match equally, it is the last, which is the more usual form.
  const [best] = issue.errors
    .flatMap((errors) => errors.slice(0, 1))
    .filter((error) => error.path.length > 0 || error.code === "unrecognized_keys" || error.code === "too_big")
    .toReversed()
    .toSorted((a, b) => b.path.length - a.path.length);
  return best ? findingOf(best, path, root) : unshaped(path);
}

function outOfRange(issue: Extract<Issue, { code: "too_small" | "too_big" }>, path: Path, words: string): Finding {
  return { path, words: issue.message.startsWith(rangeMark) ? issue.message : `Input should be ${words}` };
}

function missing(path: Path): Finding {
  return { path, words: "Field required" };
}

function unshaped(path: Path): Finding {
  return { path, words: "Input does not match the expected shape." };
}

function typeWords({ expected, message }: Extract<Issue, { code: "invalid_type" }>): string {
  if (message === integerWords) return message;
  switch (expected) {
    case "array":
      return "Input should be a valid list";
    case "object":
    case "record":
      return "Input should be a valid dictionary";
    default:
      return `Input should be a valid ${expected}`;
  }
}

/** Returns `'a'`, `'a' or 'b'`, `'a', 'b' or 'c'`. */
function alternatives(names: readonly string[]): string {
  const quoted = names.map((name) => `'${name}'`);
  if (quoted.length < 2) return quoted.join("");
  return `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
}

/** Members whose objects have a `type` that Anthropic's paths contain, and lists of such objects. */
const unions: ReadonlySet<PropertyKey> = new Set(["tool_choice", "thinking", "source"]);
const unionLists: ReadonlySet<PropertyKey> = new Set(["content", "tools"]);

function pathText(name: string, root: unknown, path: Path): string {
  let text = name;
  let value = root;
  let member: PropertyKey = name;
  for (const [at, key] of path.entries()) {
    text += `.${String(key)}`;
    value = valueAt(value, [key]);
    const isLast = at === path.length - 1;
    const isUnion = typeof key === "number" ? unionLists.has(member) : unions.has(key);
    if (isUnion && !isLast && isObject(value) && path[at + 1] !== "type") text += `.${tagOf(value, member)}`;
    if (typeof key !== "number") member = key;
  }
  // The request's member is a union itself: `thinking.enabled.budget_tokens`.
  if (unions.has(name) && isObject(root) && path.length > 0 && path[0] !== "type")
    return `${name}.${tagOf(root, name)}${text.slice(name.length)}`;
  return text;
}

function tagOf({ type }: { readonly [key: string]: unknown }, member: PropertyKey): string {
  return typeof type === "string" ? type : member === "tools" ? "custom" : "";
}

function valueAt(root: unknown, path: Path): unknown {
  let value = root;
  for (const key of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}
