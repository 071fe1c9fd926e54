import { bodyDemandsJson } from "../../../wire/apis/tolerant/json-answer.ts";
import { isObject } from "../../../wire/core/json.ts";
import { type Json } from "./view.ts";

/**
 * What a request requires of its answer. A request that is not known requires nothing. Neither does what a server may refuse (a negative
 * limit, a required call without tools): ./group/expectation.ts judges whether the server refuses it, and no other rule reports it again.
 */
export interface Expectations {
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
  /** The names of the declared tools; `undefined` if the request is not known. */
  readonly tools: ReadonlySet<unknown> | undefined;
}

export function expectationsOf(body: Json | undefined): Expectations {
  const { stop, tool_choice: choice } = body ?? {};
  const tools = body && declared(body);
  const fn = isObject(choice) ? choice.function : undefined;
  const named = isObject(fn) && typeof fn.name === "string" && tools?.has(fn.name) ? fn.name : undefined;
  const limit = body?.max_completion_tokens ?? body?.max_tokens;
  const stops = [stop].flat().filter((one): one is string => typeof one === "string" && one !== "");
  return {
    // An echoed prompt may contain stop strings.
    stops: body?.echo === true ? [] : stops,
    limit: isCount(limit) ? limit : undefined,
    named,
    forced: (choice === "required" && tools !== undefined && tools.size > 0) || named !== undefined,
    silent: body !== undefined && (choice === "none" || (!Array.isArray(body.tools) && !Array.isArray(body.functions))),
    single: body?.parallel_tool_calls === false,
    json: bodyDemandsJson(body),
    tools,
  };
}

/** Returns the number of choices that a request asks for: `n` (1 if it is not a count) times the prompts. A list of numbers is one prompt. */
export function requestedChoices({ n, prompt }: Json): number {
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
