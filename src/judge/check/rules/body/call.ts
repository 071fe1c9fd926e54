import { atName, bodyChoices, isChat, messageOf, shown } from "../place.ts";
import type { BodyRule } from "../rule.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { type BodyView, type Json, parsedJson } from "../view.ts";

const concern = "tool calls break";

function callsOf(choice: Json): readonly Json[] {
  const calls = messageOf(choice).tool_calls;
  return Array.isArray(calls) ? calls.filter(isObject) : [];
}

const hasCalls = (view: BodyView) => isChat(view) && bodyChoices(view).some((choice) => callsOf(choice).length > 0);

const callRule = { severity: "error", concern, judges: "body", shown: hasCalls } as const;

/** Rules about the tool calls of an answer that is not streamed. Source: specification, `ChatCompletionMessageToolCall`. */
export const callRules: readonly BodyRule[] = [
  {
    ...callRule,
    id: "body/call-shape",
    says: "A call has an id, type function and a function with name and arguments (a string).",
    source: "specification; LiteLLM #40040, opencode #47954",
    breaks: ["official SDK helpers", "AI SDK (schema)", "LangChain"],
    *judge(view) {
      for (const call of bodyChoices(view).flatMap(callsOf)) {
        if (call.type === "custom") continue;
        const fn = isObject(call.function) ? call.function : {};
        if (typeof call.id !== "string" || call.id === "")
          yield atName(view, "tool_calls", `a call with id ${shown(call.id)}`);
        else if (call.type !== "function") yield atName(view, "tool_calls", `a call of type ${shown(call.type)}`);
        else if (typeof fn.name !== "string" || fn.name === "")
          yield atName(view, "tool_calls", `a call named ${shown(fn.name)}`);
        else if (typeof fn.arguments !== "string")
          yield atName(view, "arguments", `arguments is ${shown(fn.arguments)}`);
      }
    },
  },
  {
    ...callRule,
    id: "body/call-json",
    says: "A call's arguments are one JSON object.",
    source: "recordings; vLLM #28806",
    breaks: ["every agent (JSON.parse throws)"],
    *judge(view) {
      // A call is incomplete if the token limit ended the choice.
      const whole = bodyChoices(view).filter((choice) => choice.finish_reason !== "length");
      for (const call of whole.flatMap(callsOf)) {
        const text = isObject(call.function) ? call.function.arguments : undefined;
        if (typeof text === "string" && !isObject(parsedJson(text)))
          yield atName(view, "arguments", `arguments ${shown(text)}`);
      }
    },
  },
  {
    id: "body/call-index",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "Calls of an answer that is not streamed have no index.",
    source: "recordings 1,600 of 1,600",
    breaks: [],
    judges: "body",
    shown: hasCalls,
    *judge(view) {
      if (
        bodyChoices(view)
          .flatMap(callsOf)
          .some((call) => "index" in call)
      )
        yield atName(view, "tool_calls", "an index");
    },
  },
  {
    ...callRule,
    id: "body/call-ids",
    says: "No two calls have the same id.",
    source: "specification (results are matched by it)",
    breaks: ["every agent with parallel calls"],
    *judge(view) {
      for (const choice of bodyChoices(view)) {
        const ids = callsOf(choice).map((call) => call.id);
        const twice = ids.find((id, i) => ids.indexOf(id) !== i);
        if (twice !== undefined) yield atName(view, "tool_calls", `the id ${shown(twice)} twice`);
      }
    },
  },
  {
    id: "body/call-null",
    severity: "warning",
    concern,
    says: "tool_calls is absent when there are no calls, not null and not empty.",
    source: "recordings; specification (not nullable)",
    breaks: ["clients that test for the key", "typed clients (Go, Rust, Java, C#)"],
    judges: "body",
    shown: isChat,
    *judge(view) {
      for (const choice of bodyChoices(view)) {
        const message = messageOf(choice);
        if ("tool_calls" in message && callsOf(choice).length === 0)
          yield atName(view, "tool_calls", `tool_calls is ${shown(message.tool_calls)}`);
      }
    },
  },
  {
    id: "body/call-finish",
    severity: "error",
    concern,
    says: "finish_reason is tool_calls (or length) with calls, unless the request named one, and never without calls.",
    source: "recordings (named: stop, 9 of 9); LiteLLM #35663",
    breaks: ["AI SDK, LangChain, Cline/Roo/Kilo (they do not run the tools)"],
    judges: "body",
    shown: isChat,
    *judge(view) {
      const named = isObject(view.exchange.request.body?.tool_choice);
      for (const choice of bodyChoices(view)) {
        const calls = callsOf(choice).length > 0;
        const reason = choice.finish_reason;
        if (calls && reason === "stop" && !named) yield atName(view, "finish_reason", "stop next to tool calls");
        if (!calls && reason === "tool_calls") yield atName(view, "finish_reason", "tool_calls without a call");
      }
    },
  },
];
