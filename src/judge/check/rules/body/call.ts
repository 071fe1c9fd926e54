import { atName, bodyChoices, isChat, messageOf, shown } from "../place.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { type BodyView, type Json, parsedJson } from "../view.ts";
import { type Rules, notShown, whenAll } from "../rule.ts";

function callsOf(choice: Json): readonly Json[] {
  const calls = messageOf(choice).tool_calls;
  return Array.isArray(calls) ? calls.filter(isObject) : [];
}

const hasCalls = (view: BodyView) => isChat(view) && bodyChoices(view).some((choice) => callsOf(choice).length > 0);

/** Rules about the tool calls of an answer that is not streamed. Source: specification, `ChatCompletionMessageToolCall`. */
export const callRules: Rules<BodyView> = {
  ...whenAll(hasCalls, {
    *"body/call-shape"(view) {
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
    *"body/call-json"(view) {
      // A call is incomplete if the token limit ended the choice.
      const whole = bodyChoices(view).filter((choice) => choice.finish_reason !== "length");
      for (const call of whole.flatMap(callsOf)) {
        const text = isObject(call.function) ? call.function.arguments : undefined;
        if (typeof text === "string" && !isObject(parsedJson(text)))
          yield atName(view, "arguments", `arguments ${shown(text)}`);
      }
    },
    *"body/call-index"(view) {
      if (
        bodyChoices(view)
          .flatMap(callsOf)
          .some((call) => "index" in call)
      )
        yield atName(view, "tool_calls", "an index");
    },
    *"body/call-ids"(view) {
      for (const choice of bodyChoices(view)) {
        const ids = callsOf(choice).map((call) => call.id);
        const twice = ids.find((id, i) => ids.indexOf(id) !== i);
        if (twice !== undefined) yield atName(view, "tool_calls", `the id ${shown(twice)} twice`);
      }
    },
  }),
  *"body/call-null"(view) {
    if (!isChat(view)) return notShown;
    for (const choice of bodyChoices(view)) {
      const message = messageOf(choice);
      if ("tool_calls" in message && callsOf(choice).length === 0)
        yield atName(view, "tool_calls", `tool_calls is ${shown(message.tool_calls)}`);
    }
  },
  *"body/call-finish"(view) {
    if (!isChat(view)) return notShown;
    const named = isObject(view.exchange.request.body?.tool_choice);
    for (const choice of bodyChoices(view)) {
      const calls = callsOf(choice).length > 0;
      const reason = choice.finish_reason;
      if (calls && reason === "stop" && !named) yield atName(view, "finish_reason", "stop next to tool calls");
      if (!calls && reason === "tool_calls") yield atName(view, "finish_reason", "tool_calls without a call");
    }
  },
};
