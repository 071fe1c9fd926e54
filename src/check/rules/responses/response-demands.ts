import { isObject } from "../../../core/json.ts";
import type { Json } from "../view.ts";

/**
 * What a request demands of its response; nothing when the request is not known. What a server may refuse (a required call without
 * tools) demands nothing: whether it was refused is judged elsewhere.
 */
export interface ResponseDemands {
  /** The one tool that must be called. */
  readonly named: string | undefined;
  /** Some tool must be called. */
  readonly forced: boolean;
  /** No tool of the client's may be called. */
  readonly silent: boolean;
  /** At most one call. */
  readonly single: boolean;
  /** The text must be JSON. */
  readonly json: boolean;
  /** Tokens of the answer, thoughts included. */
  readonly limit: number | undefined;
  readonly logprobs: boolean;
  /** Thoughts come sealed. */
  readonly sealed: boolean;
  /** Those that may be called, by name, in a group as `GROUP NAME`; undefined where they are not known. */
  readonly tools: ReadonlySet<string> | undefined;
}

export function responseDemands(body: Json | undefined): ResponseDemands {
  const { tool_choice: choice, text, include, max_output_tokens: limit } = body ?? {};
  const declared = body && clientTools(body);
  const list = body && Array.isArray(body.tools) ? body.tools : [];
  const chosen = isObject(choice) ? choice : {};
  const isNamed = chosen.type === "function" || chosen.type === "custom";
  const named = isNamed && declared?.has(nameOf(chosen)) ? nameOf(chosen) : undefined;
  const allowed =
    chosen.type === "allowed_tools" && Array.isArray(chosen.tools) ? chosen.tools.filter(isObject) : undefined;
  const allowsHosted = allowed?.some(({ type }) => !isClients(type)) === true;
  const mustCall = choice === "required" || chosen.mode === "required";
  const format = isObject(text) && isObject(text.format) ? text.format : {};
  const wanted = Array.isArray(include) ? (include as unknown[]) : [];
  return {
    named,
    forced:
      named !== undefined || (mustCall && declared !== undefined && declared.size === list.length && list.length > 0),
    silent:
      body !== undefined && (choice === "none" || (list.length === 0 && body.tools !== undefined) || hasNone(body)),
    single: body?.parallel_tool_calls === false,
    json: format.type === "json_object" || (format.type === "json_schema" && isObject(format.schema)),
    limit: Number.isInteger(limit) && (limit as number) > 0 ? (limit as number) : undefined,
    logprobs: wanted.includes("message.output_text.logprobs"),
    sealed: wanted.includes("reasoning.encrypted_content"),
    tools: allowed && !allowsHosted ? new Set(allowed.map(nameOf)) : declared,
  };
}

/** Tools may be loaded on the way, or belong to a stored prompt. */
function hasNone({ tools, prompt, input }: Json): boolean {
  return tools === undefined && prompt === undefined && !JSON.stringify(input ?? "").includes('"tool_search');
}

function isClients(type: unknown): boolean {
  return type === "function" || type === "custom";
}

/** A tool by its name, one of a group by both. */
export function nameOf({ namespace, name }: Json): string {
  return typeof namespace === "string" ? `${namespace} ${String(name)}` : String(name);
}

/** undefined: tools may be loaded that the request does not name. */
function clientTools({ tools, input }: Json): ReadonlySet<string> | undefined {
  const list = Array.isArray(tools) ? tools.filter(isObject) : [];
  const loads = list.some(({ type }) => type === "tool_search") || JSON.stringify(input ?? "").includes('"tool_search');
  if (loads) return undefined;
  return new Set(
    list.flatMap((tool) => {
      if (isClients(tool.type))
        return [nameOf({ name: tool.name ?? (isObject(tool.function) ? tool.function.name : "") })];
      if (tool.type !== "namespace" || !Array.isArray(tool.tools)) return [];
      return tool.tools.filter(isObject).map(({ name }) => nameOf({ namespace: tool.name, name }));
    }),
  );
}
