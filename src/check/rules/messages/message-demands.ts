import { isObject } from "../../../core/json.ts";
import type { Json } from "../view.ts";

/**
 * What a request demands of the message; nothing when the request is not known. What a server may refuse (a limit that is none, a choice
 * without tools) demands nothing.
 */
export interface MessageDemands {
  readonly stops: readonly string[];
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
  /** No thinking. */
  readonly thoughtless: boolean;
  /** The tools that were declared; undefined where the request is not known. */
  readonly tools: ReadonlySet<unknown> | undefined;
}

export function messageDemands(body: Json | undefined): MessageDemands {
  const {
    stop_sequences: stops,
    max_tokens: limit,
    thinking,
    output_config: config,
    output_format: older,
  } = body ?? {};
  const choice = isObject(body?.tool_choice) ? body.tool_choice : {};
  const declared = Array.isArray(body?.tools) ? body.tools.filter(isObject) : [];
  const tools = new Set<unknown>(declared.map(({ name }) => name));
  const named = choice.type === "tool" && typeof choice.name === "string" && tools.has(choice.name);
  return {
    stops: Array.isArray(stops) ? stops.filter((one): one is string => typeof one === "string" && one !== "") : [],
    limit: Number.isInteger(limit) && (limit as number) > 0 ? (limit as number) : undefined,
    named: named ? String(choice.name) : undefined,
    forced: named || (choice.type === "any" && tools.size > 0),
    silent: body !== undefined && (choice.type === "none" || tools.size === 0),
    single: choice.disable_parallel_tool_use === true,
    json: isObject(isObject(config) ? (config.format ?? older) : older),
    thoughtless: isObject(thinking) && thinking.type === "disabled",
    tools: body && tools,
  };
}
