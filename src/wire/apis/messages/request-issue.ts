import type * as z from "zod";
import { FailureError, invalidRequest } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import { integerWords } from "./request-schema.ts";

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

interface Finding {
  readonly path: Path;
  readonly words: string;
  /** Where the mistake is, if the words name another place. */
  readonly place?: Path;
}

/**
 * Returns the refusal of a request's member in Anthropic's words: the path with dots and the tags of the unions in it
 * (`messages.0.content.1.tool_result.tool_use_id`), a colon, and the words of Anthropic's validator. Only the first issue counts.
 * Source: recordings of 2025 and 2026, messages quoted in issue threads, and answers of 2026-08-31 (`messagesCheckOrder`).
 */
export function messageIssueFailure(name: string, value: unknown, issues: readonly Issue[]): FailureError {
  const [issue] = issues;
  const { path, words, place = path } = issue ? findingOf(issue, [], value, name) : unshaped([]);
  return invalidRequest(`${pathText(name, value, path)}: ${words}`, pathText(name, value, place));
}

/** Returns a 400 in Anthropic's form: `path: words`. */
export function refusal(path: string, words: string): FailureError {
  return invalidRequest(`${path}: ${words}`, path);
}

/** Returns a 400 with one of Anthropic's codes, on which its clients act. */
export function codedRefusal(path: string, words: string, code: string): FailureError {
  const { failure } = refusal(path, words);
  return new FailureError({ ...failure, details: { error_code: code } });
}

function findingOf(issue: Issue, before: Path, root: unknown, name: string): Finding {
  const path = [...before, ...issue.path];
  const value = valueAt(root, path);
  switch (issue.code) {
    case "unrecognized_keys":
      return { path: [...path, issue.keys[0] ?? ""], words: "Extra inputs are not permitted" };
    case "invalid_union":
      return value === undefined ? missing(path) : ofUnion(issue, path, root, name);
    case "invalid_type":
      return value === undefined ? missing(path) : { path, words: typeWords(issue, path, name) };
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

function ofUnion(issue: Extract<Issue, { code: "invalid_union" }>, path: Path, root: unknown, name: string): Finding {
  const value = valueAt(root, path);
  if (issue.discriminator !== undefined && "options" in issue) {
    const tags = (issue.options ?? []).map(String);
    // Only strings are converted: `String` would call an object's own `toString`.
    const tag = typeof value === "string" ? value : JSON.stringify(value);
    if (issue.discriminator === "role")
      return { path: [], words: `Unexpected role "${tag}". Allowed roles are "user" or "assistant"`, place: path };
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
  if (best) return findingOf(best, path, root, name);
  if (isTagged(path, name)) return { path, words: "Input should be an object" };
  // A text, or a list of blocks.
  const takesList = issue.errors.some(([first]) => first?.code === "invalid_type" && first.expected === "array");
  return takesList ? { path, words: "Input should be a valid array" } : unshaped(path);
}

function outOfRange(issue: Extract<Issue, { code: "too_small" | "too_big" }>, path: Path, words: string): Finding {
  // zod's own messages begin with these words.
  return {
    path,
    words: /^(?:Too (?:small|big)|Input should be)/.test(issue.message) ? `Input should be ${words}` : issue.message,
  };
}

function missing(path: Path): Finding {
  return { path, words: "Field required" };
}

function unshaped(path: Path): Finding {
  return { path, words: "Input does not match the expected shape." };
}

function typeWords({ expected, message }: Extract<Issue, { code: "invalid_type" }>, path: Path, name: string): string {
  if (message === integerWords) return message;
  switch (expected) {
    case "object":
    case "record":
      return isTagged(path, name) ? "Input should be an object" : unshaped(path).words;
    default:
      return `Input should be a valid ${expected}`;
  }
}

/** Whether the object at a path is one of several types. */
function isTagged(path: Path, name: string): boolean {
  const key = path.at(-1) ?? name;
  return typeof key === "number" ? unionLists.has(path.at(-2) ?? name) : unions.has(key);
}

/** Returns `'a'`, `'a' or 'b'`, `'a', 'b' or 'c'`. */
function alternatives(names: readonly string[]): string {
  const quoted = names.map((name) => `'${name}'`);
  if (quoted.length < 2) return quoted.join("");
  return `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
}

/** Members whose objects have a `type` that Anthropic's paths contain, and lists of such objects. */
const unions: ReadonlySet<PropertyKey> = new Set(["cache_control", "tool_choice", "thinking", "source"]);
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
