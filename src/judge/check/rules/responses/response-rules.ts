import * as z from "zod";
import { membersOf } from "../../../../wire/apis/members.ts";
import { idPrefixes } from "../../../../wire/apis/responses/ids.ts";
import {
  cacheDiagnosticsType,
  cacheMissReason,
  incompleteDetails,
  response as schema,
  responseUsage,
  writtenItems,
} from "../../../../wire/apis/responses/schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { ownIdViolations, shown } from "../place.ts";
import type { Violation } from "../rule.ts";
import { schemaViolation } from "../spec/validate.ts";
import type { Json } from "../view.ts";
import { echoRules, responseRequestRules } from "./request-rules.ts";
import {
  clientCalls,
  contentParts,
  isCall,
  isAttributed,
  isCompleted,
  type ResponseRule,
  responseRuleList,
  responseText,
  type ResponseView,
} from "./response-view.ts";

const lost = "text is lost or wrong";
const calls = "tool calls break";

function* member(view: ResponseView, name: string, right: (value: unknown) => boolean): Generator<Violation> {
  const value = view.response[name];
  if (!right(value)) yield view.at(name, `${name} is ${shown(value)}`);
}

function ofType({ output }: ResponseView, type: string): readonly Json[] {
  return output.filter((item) => item.type === type);
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

/** Rules about a response in its final state. Source: specification, `Response`; 227 streams and 415 bodies of 2026. */
const responseRules: readonly ResponseRule[] = responseRuleList([
  {
    id: "responses/id",
    severity: "error",
    concern: lost,
    says: "The response has an id, a string that is not empty.",
    source: "specification: Response.id; source code of Codex CLI: ResponseCompleted.id",
    breaks: ["Codex (the answer is not read)", "clients that continue with previous_response_id"],
    judge: (view) => member(view, "id", isText),
  },
  {
    id: "responses/object",
    severity: "error",
    concern: lost,
    says: "object is response.",
    source: "specification (a constant)",
    breaks: ["official SDKs (openai-python: output_text)", "typed clients (Go, Rust, Java, C#)"],
    judge: (view) => member(view, "object", (value) => value === "response"),
  },
  {
    id: "responses/created",
    severity: "error",
    concern: lost,
    says: "created_at is an integer: Unix time in seconds.",
    source: "specification: Response.created_at; llama.cpp #20607",
    breaks: ["AI SDK (schema)", "typed clients (Go, Rust, Java, C#)"],
    judge: (view) =>
      member(
        view,
        "created_at",
        (value) => Number.isInteger(value) && (value as number) > 0 && (value as number) < 1e11,
      ),
  },
  {
    id: "responses/model",
    severity: "error",
    concern: lost,
    says: "The response names its model.",
    source: "specification: Response.model; llama.cpp #20607",
    breaks: ["AI SDK (schema)", "cost accounting"],
    judge: (view) => member(view, "model", isText),
  },
  {
    id: "responses/end",
    severity: "error",
    concern: "the answer seems to end wrongly",
    says: "The response says how it ended: completed, incomplete with a reason, or failed with an error, and nothing else next to it.",
    source:
      "specification: Response.status, incomplete_details, error; recordings 642 of 642; source code of Codex CLI",
    breaks: ["Codex (it reads the code of an error)", "clients that look whether the answer is whole"],
    // A background response is shown in its current state.
    shown: ({ exchange: { request }, response }) =>
      request.body?.background !== true &&
      !(
        (request.method === "GET" || response.background === true) &&
        (response.status === "queued" || response.status === "in_progress")
      ),
    *judge(view) {
      const { status, error, incomplete_details: details } = view.response;
      if (status !== "completed" && status !== "incomplete" && status !== "failed" && status !== "cancelled")
        yield view.at("status", `status is ${shown(status)}`);
      const reason = (details as { reason?: unknown } | null | undefined)?.reason;
      if (status === "incomplete" && !incompleteDetails.required().safeParse(details).success)
        yield view.at("incomplete_details", `incomplete because of ${shown(reason)}`);
      if (status !== "incomplete" && details !== null && details !== undefined)
        yield view.at(
          "incomplete_details",
          `incomplete_details is ${shown(details)} of a response that is ${shown(status)}`,
        );
      const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
      if (status === "failed" && !(isText(code) && isText(message))) yield view.at("error", `error is ${shown(error)}`);
      if (status === "completed" && error !== null && error !== undefined)
        yield view.at("error", `error is ${shown(error)} of a response that is completed`);
    },
  },
  {
    id: "responses/output",
    severity: "error",
    concern: lost,
    says: "output is a list of items, each with a type; of a completed response it is not empty, unless the request only prewarms: then it is.",
    source: "specification: Response.output; sub2api #4468; source code of openai-agents and LangChain",
    breaks: ["openai-agents", "official SDKs: output_text", "LangChain"],
    *judge(view) {
      const { output, status } = view.response;
      if (!Array.isArray(output)) yield view.at("output", `output is ${shown(output)}`);
      else if (preparesOnly(view)) {
        if (output.length > 0) yield view.at("output", `${output.length} items of a request that only prewarms`);
      } else if (output.length === 0 && status === "completed" && !isAttributed(view.response))
        yield view.at("output", "no items");
      else if (view.output.length !== output.length || view.output.some(({ type }) => !isText(type)))
        yield view.at("output", "an item without a type");
    },
  },
  {
    id: "responses/item-id",
    severity: "error",
    concern: lost,
    says: "Every item has an id of its own.",
    source: "specification: OutputItem; recordings 642 of 642; llama.cpp #20607, opencode #46885",
    breaks: ["AI SDK, opencode (a call without one is dropped)", "clients that give items back by reference"],
    shown: (view) => view.output.length > 0,
    *judge(view) {
      const ids = view.output.map(({ id }) => id);
      for (const { at, found } of ownIdViolations("id", ids)) yield view.at("output", `output[${at}]: ${found}`);
    },
  },
  {
    id: "responses/message",
    severity: "error",
    concern: lost,
    says: "A message has role assistant, and parts output_text (text, annotations) or refusal (refusal).",
    source:
      "specification: OutputMessage; LM Studio #1089 (no annotations: ElizaOS fails, by the schema of the AI SDK)",
    breaks: ["AI SDK, ElizaOS (schema)", "official SDKs: output_text"],
    shown: (view) => ofType(view, "message").length > 0,
    *judge(view) {
      for (const item of ofType(view, "message")) {
        if (item.role !== "assistant") yield view.at("role", `role is ${shown(item.role)}`);
        if (!Array.isArray(item.content)) yield view.at("content", `content is ${shown(item.content)}`);
        for (const { type, text, refusal, annotations } of contentParts(item)) {
          if (type === "refusal") {
            if (typeof refusal !== "string") yield view.at("refusal", `refusal is ${shown(refusal)}`);
          } else if (type !== "output_text") yield view.at("content", `a part of type ${shown(type)}`);
          else if (typeof text !== "string") yield view.at("text", `text is ${shown(text)}`);
          else if (!Array.isArray(annotations)) yield view.at("content", `annotations is ${shown(annotations)}`);
        }
      }
    },
  },
  {
    id: "responses/call",
    severity: "error",
    concern: calls,
    says: "A call has a call_id of its own, a name, and its input as a string (function_call: arguments, custom_tool_call: input).",
    source: "specification: FunctionToolCall, CustomToolCall",
    breaks: ["every agent"],
    shown: (view) => clientCalls(view).length > 0,
    *judge(view) {
      const ids = clientCalls(view).map((call) => call.call_id);
      for (const { found } of ownIdViolations("call_id", ids)) yield view.at("call_id", found);
      for (const call of clientCalls(view)) {
        const input = call.type === "function_call" ? "arguments" : "input";
        if (!isText(call.name)) yield view.at("name", `name is ${shown(call.name)}`);
        if (typeof call[input] !== "string") yield view.at(input, `${input} is ${shown(call[input])}`);
      }
    },
  },
  {
    id: "responses/arguments",
    severity: "error",
    concern: calls,
    says: "The arguments of a completed function_call are a JSON object.",
    source: "specification: FunctionToolCall.arguments; recordings 642 of 642",
    breaks: ["every agent (JSON.parse throws)"],
    shown: (view) => clientCalls(view).some(isFinished),
    *judge(view) {
      for (const call of clientCalls(view).filter(isFinished)) {
        const { arguments: text } = call;
        if (typeof text === "string" && !isObjectText(text)) yield view.at("arguments", `arguments are ${shown(text)}`);
      }
    },
  },
  {
    id: "responses/reasoning",
    severity: "error",
    concern: lost,
    says: "A reasoning item has its summary, a list, and shows its text in summary (summary_text) or content (reasoning_text), nowhere else.",
    source: "specification: ReasoningItem; recordings 642 of 642; source code of AI SDK and LangChain",
    breaks: ["AI SDK, LangChain (they read summary)"],
    shown: (view) => ofType(view, "reasoning").length > 0,
    *judge(view) {
      for (const item of ofType(view, "reasoning")) {
        if (!Array.isArray(item.summary)) yield view.at("summary", `summary is ${shown(item.summary)}`);
        const parts = [
          ...contentParts({ content: item.summary }).map((part) => ({ part, due: "summary_text" })),
          ...contentParts(item).map((part) => ({ part, due: "reasoning_text" })),
        ];
        for (const { part, due } of parts)
          if (part.type !== due || typeof part.text !== "string")
            yield view.at("output", `${shown(part)} in place of ${due}`);
      }
    },
  },
  {
    id: "responses/prefixes",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "Ids begin with resp_, msg_, rs_, fc_, ctc_, and those of calls with call_.",
    source: "recordings 642 of 642",
    breaks: [],
    *judge(view) {
      const { id } = view.response;
      if (typeof id === "string" && !id.startsWith("resp_")) yield view.at("id", `id ${shown(id)}`);
      for (const item of view.output) {
        if (!writtenItems.has(item.type)) continue;
        const prefix = idPrefixes[item.type as keyof typeof idPrefixes];
        if (typeof item.id === "string" && !item.id.startsWith(prefix))
          yield view.at("output", `the id ${shown(item.id)} of a ${String(item.type)}`);
      }
    },
  },
  {
    id: "spec/response",
    severity: "error",
    concern: lost,
    says: "A response matches the schema of the specification.",
    source: "OpenAI's OpenAPI document: Response; llama.cpp #20607, LM Studio #1089",
    breaks: ["clients that validate answers against the specification", "the compliance suite of Open Responses"],
    *judge(view) {
      const violation = schemaViolation(schema, view.response);
      if (violation) {
        const { path, found, member } = violation;
        yield { ...view.at(member, `${path} ${found}`), member };
      }
    },
  },
  {
    id: "responses/diagnostics",
    severity: "error",
    concern: "requests are misunderstood",
    says: "prompt_cache_diagnostics of a cache miss have their reason and the number of missed tokens.",
    source: "OpenAI's documentation: Prompt cache diagnostics; the types of SDK 7.57.0",
    breaks: ["typed clients (Go, Rust, Java, C#)"],
    shown: ({ response }) => diagnosticsOf(response)?.type === "cache_miss",
    *judge({ response, at }) {
      const { reason, cache_missed_tokens: tokens } = diagnosticsOf(response) ?? {};
      if (!isText(reason)) yield at("prompt_cache_diagnostics", `reason is ${shown(reason)}`);
      if (tokens === undefined) yield at("prompt_cache_diagnostics", "no cache_missed_tokens");
    },
  },
  {
    id: "responses/diagnostics-known",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "prompt_cache_diagnostics have a type and a reason that OpenAI documents.",
    source: "OpenAI's documentation: Prompt cache diagnostics",
    breaks: [],
    shown: ({ response }) => diagnosticsOf(response) !== undefined,
    *judge({ response, at }) {
      const { type, reason } = diagnosticsOf(response) ?? {};
      if (isText(type) && !cacheDiagnosticsType.safeParse(type).success)
        yield at("prompt_cache_diagnostics", `the type ${shown(type)}`);
      if (isText(reason) && !cacheMissReason.safeParse(reason).success)
        yield at("prompt_cache_diagnostics", `the reason ${shown(reason)}`);
    },
  },
  {
    id: "responses/whole-items",
    severity: "error",
    concern: "the answer seems to end wrongly",
    says: "In a completed response every message and call is completed.",
    source: "specification: OutputItem.status; recordings 642 of 642",
    breaks: ["agents (they run half of a call)"],
    shown: (view) => isCompleted(view) && view.output.length > 0,
    *judge(view) {
      for (const { type, status } of view.output)
        if (/^(message|function_call|custom_tool_call)$/.test(String(type)) && status !== "completed")
          yield view.at("output", `a ${String(type)} with status ${shown(status)}`);
    },
  },
]);

function diagnosticsOf({ prompt_cache_diagnostics: found }: Json): Json | undefined {
  return isObject(found) ? found : undefined;
}

/** Whether a request only prepares for later ones. */
function preparesOnly({ exchange }: ResponseView): boolean {
  const { generate, prompt_cache_options: options } = exchange.request.body ?? {};
  return generate === false || (isObject(options) && options.prewarm === true);
}

function isFinished({ type, status }: { readonly [name: string]: unknown }): boolean {
  return type === "function_call" && status !== "incomplete";
}

function isObjectText(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value);
  } catch {
    return false;
  }
}

const wrongCounts = "token counts are wrong";

function usageOf({ response }: ResponseView): Json | undefined {
  return isObject(response.usage) ? response.usage : undefined;
}

function hasUsage(view: ResponseView): boolean {
  return usageOf(view) !== undefined;
}

function detail(usage: Json, of: string, name: string): unknown {
  const details = usage[of];
  return isObject(details) ? details[name] : undefined;
}

/** Returns the counts that every usage has, by their names: its own first, then those of its details. */
function counts(schema: z.ZodObject, usage: Json): readonly (readonly [string, unknown])[] {
  const due = membersOf(schema).filter(({ always }) => always);
  const own = due.filter(({ schema: member }) => !(member instanceof z.ZodObject));
  return [
    ...own.map(({ name }) => [name, usage[name]] as const),
    ...due.flatMap(({ name, schema: member }) => {
      const details = usage[name];
      return member instanceof z.ZodObject ? counts(member, isObject(details) ? details : {}) : [];
    }),
  ];
}

/** Rules about token counts. Source: specification, `ResponseUsage`; issues as named. */
const usageRules: readonly ResponseRule[] = responseRuleList([
  {
    id: "responses/usage",
    severity: "error",
    concern: wrongCounts,
    says: "A response that completed, or was cut, has usage.",
    source: "recordings 642 of 642; source code of AI SDK 5 (@ai-sdk/openai 2): its schema demands it",
    breaks: ["AI SDK 5 (generateText throws; of a stream the end is not read)", "LangChain, cost accounting"],
    shown: ({ response }) => response.status === "completed" || response.status === "incomplete",
    *judge(view) {
      if (!hasUsage(view)) yield view.at("usage", `usage is ${shown(view.response.usage)}`);
    },
  },
  {
    id: "responses/usage-type",
    severity: "error",
    concern: wrongCounts,
    says: "usage has input_tokens, output_tokens, total_tokens and both details (cached_tokens, reasoning_tokens), all integers, 0 or more.",
    source: "specification: ResponseUsage; llama.cpp #22659 (no output_tokens_details)",
    breaks: ["typed clients (Go, Rust, Java, C#)"],
    shown: hasUsage,
    *judge(view) {
      for (const [name, value] of counts(responseUsage, usageOf(view) ?? {}))
        if (!(Number.isInteger(value) && (value as number) >= 0)) yield view.at("usage", `${name} is ${shown(value)}`);
    },
  },
  {
    id: "responses/usage-sum",
    severity: "error",
    concern: wrongCounts,
    says: "total_tokens is the sum of input_tokens and output_tokens.",
    source: "specification; recordings 642 of 642",
    breaks: ["cost accounting"],
    shown: hasUsage,
    *judge(view) {
      const { input_tokens: input, output_tokens: output, total_tokens: total } = usageOf(view) ?? {};
      if (typeof input === "number" && typeof output === "number" && total !== input + output)
        yield view.at("total_tokens", `${shown(total)} is not ${input} + ${output}`);
    },
  },
  {
    id: "responses/usage-details",
    severity: "warning",
    concern: wrongCounts,
    says: "cached_tokens is at most input_tokens, and reasoning_tokens at most output_tokens.",
    source: "specification",
    breaks: ["cost accounting"],
    shown: hasUsage,
    *judge(view) {
      const usage = usageOf(view) ?? {};
      const cached = detail(usage, "input_tokens_details", "cached_tokens");
      const reasoning = detail(usage, "output_tokens_details", "reasoning_tokens");
      if (Number(cached ?? 0) > Number(usage.input_tokens))
        yield view.at("cached_tokens", `cached_tokens ${shown(cached)} of ${shown(usage.input_tokens)}`);
      if (Number(reasoning ?? 0) > Number(usage.output_tokens))
        yield view.at("reasoning_tokens", `reasoning_tokens ${shown(reasoning)} of ${shown(usage.output_tokens)}`);
    },
  },
  {
    id: "responses/usage-zero",
    severity: "error",
    concern: wrongCounts,
    says: "Where the input was counted, output_tokens is not 0 after text or calls.",
    source: "LiteLLM #8349, LM Studio #1602",
    breaks: ["cost accounting"],
    shown: hasUsage,
    *judge(view) {
      const { input_tokens: input, output_tokens: output } = usageOf(view) ?? {};
      const spoke = responseText(view) !== "" || view.output.some(isCall);
      if (output === 0 && input !== 0 && spoke) yield view.at("output_tokens", "output_tokens 0 after an answer");
    },
  },
  {
    id: "responses/usage-counted",
    // Clients refuse a response without usage, so a server that cannot count tokens has no better answer.
    severity: "warning",
    concern: wrongCounts,
    says: "The tokens were counted: the counts are not all 0.",
    source: "LiteLLM #8349, LM Studio #1602",
    breaks: ["cost accounting"],
    // OpenAI counts nothing for `generate: false`.
    shown: (view) => hasUsage(view) && !preparesOnly(view),
    *judge(view) {
      const { input_tokens: input, output_tokens: output } = usageOf(view) ?? {};
      if (input === 0 && output === 0) yield view.at("usage", "all counts are 0");
    },
  },
]);

/** Every rule about a response in its final state, streamed or whole. */
export const everyResponseRule: readonly ResponseRule[] = [
  ...responseRules,
  ...usageRules,
  ...responseRequestRules,
  ...echoRules,
];
