import { isObject } from "../../core/json.ts";
import { type Json } from "./view.ts";

/**
 * What a request demands of its answer; nothing when the request is not known. What a server may refuse (a negative limit, a required
 * call without tools) demands nothing: ./group/expectation.ts judges whether it was refused, and no other rule counts it again.
 */
export interface Demands {
  readonly stops: readonly string[];
  /** Tokens of one choice. */
  readonly limit: number | undefined;
  /** The one tool that must be called. */
  readonly named: string | undefined;
  /** Some tool must be called. */
  readonly forced: boolean;
  /** No tool may be called. */
  readonly silent: boolean;
  /** At most one call. */
  readonly single: boolean;
  /** The text must be JSON. */
  readonly json: boolean;
  /** The tools that were declared; undefined where the request is not known. */
  readonly tools: ReadonlySet<unknown> | undefined;
}

export function demandsOf(body: Json | undefined): Demands {
  const { stop, tool_choice: choice, response_format: format } = body ?? {};
  const tools = body && declared(body);
  const fn = isObject(choice) ? choice.function : undefined;
  const named = isObject(fn) && typeof fn.name === "string" && tools?.has(fn.name) ? fn.name : undefined;
  const limit = body?.max_completion_tokens ?? body?.max_tokens;
  const stops = [stop].flat().filter((one): one is string => typeof one === "string" && one !== "");
  return {
    // An echoed prompt may contain them.
    stops: body?.echo === true ? [] : stops,
    limit: isCount(limit) ? limit : undefined,
    named,
    forced: (choice === "required" && tools !== undefined && tools.size > 0) || named !== undefined,
    silent: body !== undefined && (choice === "none" || (!Array.isArray(body.tools) && !Array.isArray(body.functions))),
    single: body?.parallel_tool_calls === false,
    json: isObject(format) && format.type !== "text",
    tools,
  };
}

/** How many choices a request asks for: n (1 where it is no such number), of each of its prompts. A list of numbers is one prompt, of tokens. */
export function choicesAsked({ n, prompt }: Json): number {
  const prompts = Array.isArray(prompt) && prompt.length > 0 && typeof prompt[0] !== "number" ? prompt.length : 1;
  return (isCount(n) && n > 0 ? n : 1) * prompts;
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0;
}

function declared({ tools }: Json): ReadonlySet<unknown> {
  const list = Array.isArray(tools) ? tools.filter(isObject) : [];
  const named = list.map((tool) => (isObject(tool.function) ? tool.function : tool.custom));
  return new Set(named.map((fn) => (isObject(fn) ? fn.name : undefined)));
}
