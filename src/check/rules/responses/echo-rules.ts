import { isObject } from "../../../core/json.ts";
import { shown } from "../place.ts";
import type { Json } from "../view.ts";
import type { ResponseView } from "./response-view.ts";
import type { ResponseRule } from "./response-rule.ts";

/** Parameters that a response repeats as they were sent. */
const repeated = [
  "temperature",
  "top_p",
  "top_logprobs",
  "max_output_tokens",
  "max_tool_calls",
  "parallel_tool_calls",
  "store",
  "truncation",
  "previous_response_id",
  "user",
  "safety_identifier",
  "prompt_cache_key",
  "background",
] as const;

/** What a response says of its request. Source: 920 recorded responses with their requests. */
export const echoRules: readonly ResponseRule[] = [
  {
    id: "responses/echo",
    severity: "warning",
    concern: "requests are misunderstood",
    says: "The response repeats the parameters of its request: sampling, limits, tool_choice, the names of its tools, text.format, reasoning.effort, metadata, instructions.",
    source:
      "specification: Response; recordings 642 of 642; source code of dd-trace-py: openai_get_metadata_from_response reads the settings there",
    breaks: ["dd-trace-py (a trace shows other settings than those that were sent)"],
    judges: "response",
    shown: (view) => view.exchange.request.body !== undefined,
    *judge(view) {
      for (const [name, sent, told] of compared(view))
        if (told !== undefined && JSON.stringify(told) !== JSON.stringify(sent))
          yield view.at(name, `${name} is ${shown(told)}, ${shown(sent)} was sent`);
    },
  },
  {
    id: "responses/echo-members",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "The response has every member that repeats a parameter, those that the request left out with their defaults.",
    source: "recordings 642 of 642",
    breaks: [],
    judges: "response",
    *judge(view) {
      const due = [
        ...repeated,
        "instructions",
        "tools",
        "tool_choice",
        "text",
        "reasoning",
        "metadata",
        "service_tier",
      ];
      const absent = due.filter((name) => !(name in view.response));
      if (absent.length > 0) yield view.at("object", `no ${absent.join(", ")}`);
    },
  },
];

/** Parameters that were sent, and what the response says of them; undefined: nothing. */
function* compared({ exchange, response }: ResponseView): Generator<readonly [string, unknown, unknown]> {
  const body: Json = exchange.request.body ?? {};
  for (const name of repeated) if (isSent(body[name])) yield [name, body[name], response[name]];
  if (typeof body.instructions === "string") yield ["instructions", body.instructions, response.instructions];
  if (isObject(body.metadata)) yield ["metadata", sorted(body.metadata), sorted(response.metadata)];
  if (typeof body.tool_choice === "string") yield ["tool_choice", body.tool_choice, response.tool_choice];
  const { text, reasoning, tools } = body;
  const [toldText, toldReasoning] = [response.text, response.reasoning];
  if (isObject(text) && isObject(text.format) && isObject(toldText))
    yield ["text", text.format.type, isObject(toldText.format) ? toldText.format.type : undefined];
  if (isObject(reasoning) && isSent(reasoning.effort) && isObject(toldReasoning))
    yield ["reasoning", reasoning.effort, toldReasoning.effort];
  // Where tools are searched for, those that were found are told, too.
  const searches = Array.isArray(tools) && tools.some((tool) => isObject(tool) && tool.type === "tool_search");
  if (Array.isArray(tools) && !searches) yield ["tools", namesIn(tools), namesIn(response.tools)];
}

function isSent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function namesIn(tools: unknown): unknown {
  return Array.isArray(tools)
    ? tools.filter(isObject).map(({ name, type, function: fn }) => name ?? (isObject(fn) ? fn.name : type))
    : undefined;
}

function sorted(value: unknown): unknown {
  return isObject(value) ? Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)) : value;
}
