import { expectationsOf } from "../expectations.ts";
import { atChoicePart, shown } from "../place.ts";
import type { Violation, StreamRule } from "../rule.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { notOnlyJson } from "../violations.ts";
import type { StreamView } from "../view.ts";
import { chat, chatAndCompletions, streamRulesOf } from "./stream-rule.ts";
import { streamedCalls } from "./tools.ts";

const misunderstood = "requests are misunderstood";

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
export const requestRules: readonly StreamRule[] = streamRulesOf(chat, [
  {
    id: "request/stop",
    severity: "error",
    concern: misunderstood,
    says: "The text does not contain a stop string of the request.",
    source: "specification: 'The returned text will not contain the stop sequence'",
    breaks: ["agents that parse text up to a mark"],
    endpoints: chatAndCompletions,
    shown: (view) => expectations(view).stops.length > 0,
    *judge(view) {
      const { stops } = expectations(view);
      for (const choice of view.choices.keys()) {
        const stop = stops.find((one) => textOf(view, choice).includes(one));
        if (stop !== undefined)
          yield* atLast(view, choice, "finish_reason", `the stop string ${shown(stop)} in the text`);
      }
    },
  },
  {
    id: "request/max-tokens",
    severity: "error",
    concern: misunderstood,
    says: "No choice has more tokens than max_completion_tokens (max_tokens) allows.",
    source: "specification",
    breaks: ["callers that budget"],
    endpoints: chatAndCompletions,
    shown: (view) => expectations(view).limit !== undefined && view.chunks.some((chunk) => isObject(chunk.value.usage)),
    *judge(view) {
      const allowed = (expectations(view).limit ?? Infinity) * Math.max(1, view.choices.size);
      for (const { value } of view.chunks) {
        const used = isObject(value.usage) ? value.usage.completion_tokens : 0;
        if (typeof used === "number" && used > allowed)
          yield* atLast(view, [...view.choices.keys()][0] ?? 0, "finish_reason", `${used} tokens, ${allowed} allowed`);
      }
    },
  },
  {
    id: "request/required",
    severity: "error",
    concern: misunderstood,
    says: "With tool_choice required, or a named tool, there is a call.",
    source: "specification: tool_choice",
    breaks: ["agents and structured extraction"],
    shown: (view) => ended(view) && expectations(view).forced,
    *judge(view) {
      const calls = streamedCalls(view);
      for (const choice of view.choices.keys())
        if (!calls.some((call) => call.choice === choice)) yield* atLast(view, choice, "finish_reason", "no call");
    },
  },
  {
    id: "request/named",
    severity: "error",
    concern: misunderstood,
    says: "With a named tool, only that tool is called.",
    source: "specification: tool_choice",
    breaks: ["agents and structured extraction"],
    shown: (view) => expectations(view).named !== undefined,
    *judge(view) {
      const { named } = expectations(view);
      for (const call of streamedCalls(view))
        if (call.name !== named && call.deltas[0])
          yield atChoicePart(call.deltas[0].entry, "name", `a call of ${shown(call.name)}`);
    },
  },
  {
    id: "request/no-tools",
    severity: "error",
    concern: misunderstood,
    says: "With tool_choice none, or without tools, there is no call.",
    source: "specification: tool_choice; tt-inference-server #4386",
    breaks: ["agents that want an answer in words"],
    shown: (view) => expectations(view).silent,
    *judge(view) {
      for (const call of streamedCalls(view))
        if (call.deltas[0]) yield atChoicePart(call.deltas[0].entry, "tool_calls", `a call of ${shown(call.name)}`);
    },
  },
  {
    id: "request/parallel",
    severity: "error",
    concern: misunderstood,
    says: "With parallel_tool_calls false there is at most one call.",
    source: "specification: parallel_tool_calls",
    breaks: ["agents whose tools must run one after the other"],
    shown: (view) => expectations(view).single,
    *judge(view) {
      for (const choice of view.choices.keys()) {
        const [, second] = streamedCalls(view).filter((call) => call.choice === choice);
        if (second?.deltas[0]) yield atChoicePart(second.deltas[0].entry, "tool_calls", "a second call");
      }
    },
  },
  {
    id: "request/json",
    severity: "error",
    concern: misunderstood,
    says: "With response_format json_object or json_schema the text is one JSON value.",
    source: "specification: response_format",
    breaks: ["structured extraction (JSON.parse throws)"],
    shown: (view) => expectations(view).json && ended(view) && streamedCalls(view).length === 0,
    *judge(view) {
      for (const [choice, track] of view.choices) {
        if (track.some(({ delta }) => typeof delta.refusal === "string" && delta.refusal !== "")) continue;
        for (const found of notOnlyJson(textOf(view, choice))) yield* atLast(view, choice, "finish_reason", found);
      }
    },
  },
]);
