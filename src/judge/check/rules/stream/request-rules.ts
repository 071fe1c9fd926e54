import { expectationsOf } from "../expectations.ts";
import { atChoicePart, shown } from "../place.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { notOnlyJson } from "../violations.ts";
import type { StreamView } from "../view.ts";
import { chat, chatAndCompletions } from "./stream-rule.ts";
import { streamedCalls } from "./tools.ts";
import { type Rules, type Violation, notShown, on } from "../rule.ts";

const expectations = (view: StreamView) => expectationsOf(view.exchange.request.body);

function textOf(view: StreamView, choice: number): string {
  return (view.choices.get(choice) ?? [])
    .map(({ delta, choice: one }) => delta.content ?? one.text)
    .filter((text) => typeof text === "string")
    .join("");
}

function* atLast(view: StreamView, choice: number, member: string, found: string): Generator<Violation> {
  const last = view.choices.get(choice)?.at(-1);
  if (last) yield atChoicePart(last, member, found);
}

function ended(view: StreamView): boolean {
  return [...view.choices.values()].every((track) =>
    track.some(({ choice }) => typeof choice.finish_reason === "string" && choice.finish_reason !== "length"),
  );
}

/** Rules about a streamed answer and its request. The same rules about bodies are in ../body. */
export const requestRules: Rules<StreamView> = {
  ...on(chatAndCompletions, {
    *"request/stop"(view) {
      if (expectations(view).stops.length === 0) return notShown;
      const { stops } = expectations(view);
      for (const choice of view.choices.keys()) {
        const stop = stops.find((one) => textOf(view, choice).includes(one));
        if (stop !== undefined)
          yield* atLast(view, choice, "finish_reason", `the stop string ${shown(stop)} in the text`);
      }
    },
    *"request/max-tokens"(view) {
      if (expectations(view).limit === undefined || !view.chunks.some((chunk) => isObject(chunk.value.usage)))
        return notShown;
      const allowed = (expectations(view).limit ?? Infinity) * Math.max(1, view.choices.size);
      for (const { value } of view.chunks) {
        const used = isObject(value.usage) ? value.usage.completion_tokens : 0;
        if (typeof used === "number" && used > allowed)
          yield* atLast(view, [...view.choices.keys()][0] ?? 0, "finish_reason", `${used} tokens, ${allowed} allowed`);
      }
    },
  }),
  ...on(chat, {
    *"request/required"(view) {
      if (!ended(view) || !expectations(view).forced) return notShown;
      const calls = streamedCalls(view);
      for (const choice of view.choices.keys())
        if (!calls.some((call) => call.choice === choice)) yield* atLast(view, choice, "finish_reason", "no call");
    },
    *"request/named"(view) {
      if (expectations(view).named === undefined) return notShown;
      const { named } = expectations(view);
      for (const call of streamedCalls(view))
        if (call.name !== named && call.deltas[0])
          yield atChoicePart(call.deltas[0].entry, "name", `a call of ${shown(call.name)}`);
    },
    *"request/no-tools"(view) {
      if (!expectations(view).silent) return notShown;
      for (const call of streamedCalls(view))
        if (call.deltas[0]) yield atChoicePart(call.deltas[0].entry, "tool_calls", `a call of ${shown(call.name)}`);
    },
    *"request/parallel"(view) {
      if (!expectations(view).single) return notShown;
      for (const choice of view.choices.keys()) {
        const [, second] = streamedCalls(view).filter((call) => call.choice === choice);
        if (second?.deltas[0]) yield atChoicePart(second.deltas[0].entry, "tool_calls", "a second call");
      }
    },
    *"request/json"(view) {
      if (!expectations(view).json || !ended(view) || streamedCalls(view).length !== 0) return notShown;
      for (const [choice, track] of view.choices) {
        if (track.some(({ delta }) => typeof delta.refusal === "string" && delta.refusal !== "")) continue;
        for (const found of notOnlyJson(textOf(view, choice))) yield* atLast(view, choice, "finish_reason", found);
      }
    },
  }),
};
