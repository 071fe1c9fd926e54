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
import { type Structure, structuralRules } from "../spec/structure.ts";
import type { Json } from "../view.ts";
import { echoRules, responseRequestRules } from "./request-rules.ts";
import {
  clientCalls,
  contentParts,
  isCall,
  isAttributed,
  isCompleted,
  responseText,
  type ResponseView,
} from "./response-view.ts";
import { type Rules, type Violation, notShown, whenAll } from "../rule.ts";

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

const structure: Structure = { schema, members: {}, rest: "spec/response" };
const schemaRules: Rules<ResponseView> = structuralRules([structure], (view) => [
  {
    structure,
    value: view.response,
    at: ({ path, found, member }) => ({ ...view.at(member, `${path} ${found}`), member }),
  },
]);

/** Rules about a response in its final state. Source: specification, `Response`; 227 streams and 415 bodies of 2026. */
const responseRules: Rules<ResponseView> = {
  "responses/id": (view) => member(view, "id", isText),
  "responses/object": (view) => member(view, "object", (value) => value === "response"),
  "responses/created": (view) =>
    member(view, "created_at", (value) => Number.isInteger(value) && (value as number) > 0 && (value as number) < 1e11),
  "responses/model": (view) => member(view, "model", isText),
  // A background response is shown in its current state.
  *"responses/end"(view) {
    const { request } = view.exchange;
    const isRunning = view.response.status === "queued" || view.response.status === "in_progress";
    const isAsked = request.method === "GET" || view.response.background === true;
    if (request.body?.background === true || (isAsked && isRunning)) return notShown;
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
  *"responses/output"(view) {
    const { output, status } = view.response;
    if (!Array.isArray(output)) yield view.at("output", `output is ${shown(output)}`);
    else if (preparesOnly(view)) {
      if (output.length > 0) yield view.at("output", `${output.length} items of a request that only prewarms`);
    } else if (output.length === 0 && status === "completed" && !isAttributed(view.response))
      yield view.at("output", "no items");
    else if (view.output.length !== output.length || view.output.some(({ type }) => !isText(type)))
      yield view.at("output", "an item without a type");
  },
  *"responses/item-id"(view) {
    if (view.output.length === 0) return notShown;
    const ids = view.output.map(({ id }) => id);
    for (const { at, found } of ownIdViolations("id", ids)) yield view.at("output", `output[${at}]: ${found}`);
  },
  *"responses/message"(view) {
    if (ofType(view, "message").length === 0) return notShown;
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
  *"responses/call"(view) {
    if (clientCalls(view).length === 0) return notShown;
    const ids = clientCalls(view).map((call) => call.call_id);
    for (const { found } of ownIdViolations("call_id", ids)) yield view.at("call_id", found);
    for (const call of clientCalls(view)) {
      const input = call.type === "function_call" ? "arguments" : "input";
      if (!isText(call.name)) yield view.at("name", `name is ${shown(call.name)}`);
      if (typeof call[input] !== "string") yield view.at(input, `${input} is ${shown(call[input])}`);
    }
  },
  *"responses/arguments"(view) {
    if (!clientCalls(view).some(isFinished)) return notShown;
    for (const call of clientCalls(view).filter(isFinished)) {
      const { arguments: text } = call;
      if (typeof text === "string" && !isObjectText(text)) yield view.at("arguments", `arguments are ${shown(text)}`);
    }
  },
  *"responses/reasoning"(view) {
    if (ofType(view, "reasoning").length === 0) return notShown;
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
  *"responses/prefixes"(view) {
    const { id } = view.response;
    if (typeof id === "string" && !id.startsWith("resp_")) yield view.at("id", `id ${shown(id)}`);
    for (const item of view.output) {
      if (!writtenItems.has(item.type)) continue;
      const prefix = idPrefixes[item.type as keyof typeof idPrefixes];
      if (typeof item.id === "string" && !item.id.startsWith(prefix))
        yield view.at("output", `the id ${shown(item.id)} of a ${String(item.type)}`);
    }
  },
  *"responses/diagnostics"(view) {
    if (diagnosticsOf(view.response)?.type !== "cache_miss") return notShown;
    const { response, at } = view;
    const { reason, cache_missed_tokens: tokens } = diagnosticsOf(response) ?? {};
    if (!isText(reason)) yield at("prompt_cache_diagnostics", `reason is ${shown(reason)}`);
    if (tokens === undefined) yield at("prompt_cache_diagnostics", "no cache_missed_tokens");
  },
  *"responses/diagnostics-known"(view) {
    if (diagnosticsOf(view.response) === undefined) return notShown;
    const { response, at } = view;
    const { type, reason } = diagnosticsOf(response) ?? {};
    if (isText(type) && !cacheDiagnosticsType.safeParse(type).success)
      yield at("prompt_cache_diagnostics", `the type ${shown(type)}`);
    if (isText(reason) && !cacheMissReason.safeParse(reason).success)
      yield at("prompt_cache_diagnostics", `the reason ${shown(reason)}`);
  },
  *"responses/whole-items"(view) {
    if (!isCompleted(view) || view.output.length === 0) return notShown;
    for (const { type, status } of view.output)
      if (/^(message|function_call|custom_tool_call)$/.test(String(type)) && status !== "completed")
        yield view.at("output", `a ${String(type)} with status ${shown(status)}`);
  },
};

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
const usageRules: Rules<ResponseView> = {
  *"responses/usage"(view) {
    if (view.response.status !== "completed" && view.response.status !== "incomplete") return notShown;
    if (!hasUsage(view)) yield view.at("usage", `usage is ${shown(view.response.usage)}`);
  },
  ...whenAll(hasUsage, {
    *"responses/usage-type"(view) {
      for (const [name, value] of counts(responseUsage, usageOf(view) ?? {}))
        if (!(Number.isInteger(value) && (value as number) >= 0)) yield view.at("usage", `${name} is ${shown(value)}`);
    },
    *"responses/usage-sum"(view) {
      const { input_tokens: input, output_tokens: output, total_tokens: total } = usageOf(view) ?? {};
      if (typeof input === "number" && typeof output === "number" && total !== input + output)
        yield view.at("total_tokens", `${shown(total)} is not ${input} + ${output}`);
    },
    *"responses/usage-details"(view) {
      const usage = usageOf(view) ?? {};
      const cached = detail(usage, "input_tokens_details", "cached_tokens");
      const reasoning = detail(usage, "output_tokens_details", "reasoning_tokens");
      if (Number(cached ?? 0) > Number(usage.input_tokens))
        yield view.at("cached_tokens", `cached_tokens ${shown(cached)} of ${shown(usage.input_tokens)}`);
      if (Number(reasoning ?? 0) > Number(usage.output_tokens))
        yield view.at("reasoning_tokens", `reasoning_tokens ${shown(reasoning)} of ${shown(usage.output_tokens)}`);
    },
    *"responses/usage-zero"(view) {
      const { input_tokens: input, output_tokens: output } = usageOf(view) ?? {};
      const spoke = responseText(view) !== "" || view.output.some(isCall);
      if (output === 0 && input !== 0 && spoke) yield view.at("output_tokens", "output_tokens 0 after an answer");
    },
  }),
  // Clients refuse a response without usage, so a server that cannot count tokens has no better answer.
  // OpenAI counts nothing for `generate: false`.
  *"responses/usage-counted"(view) {
    if (!hasUsage(view) || preparesOnly(view)) return notShown;
    const { input_tokens: input, output_tokens: output } = usageOf(view) ?? {};
    if (input === 0 && output === 0) yield view.at("usage", "all counts are 0");
  },
};

/** Every rule about a response in its final state, streamed or whole. */
export const everyResponseRules: Rules<ResponseView> = {
  ...schemaRules,
  ...responseRules,
  ...usageRules,
  ...responseRequestRules,
  ...echoRules,
};
