import { isObject } from "../../core/json.ts";
import type { RequestBody } from "./server-profile.ts";

/** The longest name of a tool that OpenAI, DeepSeek, Bedrock and others accept: letters, digits, `_` and `-`. */
const maxLength = 64;
/** The digits of the hash that ends a shortened name. */
const hashLength = 8;

/** Whether every server accepts a tool's name. */
export function isShortToolName(name: string): boolean {
  return /^[a-zA-Z0-9_-]{1,64}$/.test(name);
}

/**
 * The names of tools in a request's body, for servers that take only short ones: each name that they refuse → a short one. The short name
 * depends on the name alone, unless another one has it already, so that the prompts of a conversation begin in the same way.
 */
export function shortToolNames(body: RequestBody): ReadonlyMap<string, string> {
  const all = toolNamesIn(body);
  const short = new Map<string, string>();
  const taken = new Set([...all].filter(isShortToolName));
  for (const name of all) {
    if (taken.has(name)) continue;
    const beginning = name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, maxLength - hashLength - 1);
    let seed = 0;
    let fitting: string;
    do fitting = `${beginning}_${hashOf(name, seed++)}`;
    while (taken.has(fitting));
    taken.add(fitting);
    short.set(name, fitting);
  }
  return short;
}

/** The names of all tools in a request's body: of declarations, choices and earlier calls, in the order of the body. */
export function toolNamesIn(body: RequestBody): ReadonlySet<string> {
  const names = new Set<string>();
  renamed(body, (name) => {
    names.add(name);
    return name;
  });
  return names;
}

/** The body with other names of tools: `nameOf` returns the new name of each. */
export function withToolNames(body: RequestBody, names: ReadonlyMap<string, string>): RequestBody {
  return renamed(body, (name) => names.get(name) ?? name);
}

/** The members of all APIs that name tools. */
const members = ["tools", "tool_choice", "functions", "function_call", "messages", "input"];

function renamed(body: RequestBody, nameOf: (name: string) => string): RequestBody {
  const changed = members.flatMap((member) => {
    const value = body[member];
    if (typeof value !== "object" || value === null) return [];
    const isMessages = member === "messages" || member === "input";
    const written = isMessages ? inMessages(value, nameOf) : inTools(value, nameOf);
    return written === value ? [] : [[member, written]];
  });
  return changed.length === 0 ? body : { ...body, ...Object.fromEntries(changed) };
}

/** Declarations and choices: `{name}`, `{function: {name}}`, `{custom: {name}}`, also inside `tools` and `allowed_tools`. */
function inTools(value: unknown, nameOf: (name: string) => string): unknown {
  if (Array.isArray(value)) return changedList(value, (one) => inTools(one, nameOf));
  if (!isObject(value)) return value;
  return changedObject(value, (key, inner) => {
    // A namespace is no tool. Its tools have names within it, which are short where the whole names are.
    if (key === "name") return typeof inner === "string" && value["type"] !== "namespace" ? nameOf(inner) : inner;
    return ["function", "custom", "tools", "allowed_tools"].includes(key) ? inTools(inner, nameOf) : inner;
  });
}

/** Earlier calls: chat's `tool_calls` and `function_call`, items of Responses, blocks of Messages; results of functions have a name, too. */
function inMessages(value: unknown, nameOf: (name: string) => string): unknown {
  if (Array.isArray(value)) return changedList(value, (one) => inMessages(one, nameOf));
  if (!isObject(value)) return value;
  const { type, role } = value;
  const isCall = type === "function_call" || type === "custom_tool_call" || type === "tool_use" || role === "function";
  return changedObject(value, (key, inner) => {
    if (key === "name") return isCall && typeof inner === "string" ? nameOf(inner) : inner;
    if (key === "tool_calls" || key === "function_call") return inTools(inner, nameOf);
    return key === "content" && Array.isArray(inner) ? inMessages(inner, nameOf) : inner;
  });
}

/** The same list where nothing changes. */
function changedList(list: readonly unknown[], change: (value: unknown) => unknown): readonly unknown[] {
  const changed = list.map(change);
  return changed.some((one, at) => one !== list[at]) ? changed : list;
}

/** The same object where nothing changes. */
function changedObject(
  value: Readonly<Record<string, unknown>>,
  change: (key: string, value: unknown) => unknown,
): Readonly<Record<string, unknown>> {
  const entries = Object.entries(value).map(([key, inner]) => [key, change(key, inner)] as const);
  return entries.some(([key, inner]) => inner !== value[key]) ? Object.fromEntries(entries) : value;
}

/** FNV-1a, 32 bits, as hexadecimal digits. */
function hashOf(text: string, seed: number): string {
  let hash = 0x811c9dc5 ^ seed;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return (hash >>> 0).toString(16).padStart(hashLength, "0");
}
