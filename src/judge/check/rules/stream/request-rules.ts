import { expectationsOf } from "../expectations.ts";
import { atChoicePart } from "../place.ts";
import { type Answer, type AnswerChoice, requestRules } from "../request-rules.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { ChoicePart, StreamView } from "../view.ts";
import { chat, chatAndCompletions } from "./stream-rule.ts";
import { type StreamedCall, streamedCalls } from "./tools.ts";
import { on, type Rules } from "../rule.ts";

/** A streamed answer of chat or completions. */
function answerOf(view: StreamView): Answer {
  const calls = streamedCalls(view);
  const [track = []] = view.choices.values();
  const last = track.at(-1);
  const counted = view.chunks.findLast(({ value }) => isObject(value.usage))?.value.usage;
  const tokens = isObject(counted) ? counted.completion_tokens : undefined;
  return {
    exchange: view.exchange,
    expectations: expectationsOf(view.exchange.request.body),
    choices: [...view.choices].flatMap(([index, parts]) =>
      choiceOf(
        parts,
        calls.filter(({ choice }) => choice === index),
      ),
    ),
    tokens: typeof tokens === "number" && last ? tokens : undefined,
    atTokens: (found) => (last ? atChoicePart(last, "finish_reason", found) : { start: 0, end: 0, found }),
  };
}

function choiceOf(parts: readonly ChoicePart[], calls: readonly StreamedCall[]): readonly AnswerChoice[] {
  const written = parts.filter((part) => textIn(part) !== "");
  const [first, last, end] = [written[0] ?? parts[0], written.at(-1) ?? parts[0], parts.at(-1)];
  if (!first || !last || !end) return [];
  const text = parts.map(textIn).join("");
  const finish = parts.find(({ choice }) => typeof choice.finish_reason === "string")?.choice.finish_reason;
  const isRefused = parts.some(({ delta }) => typeof delta.refusal === "string" && delta.refusal !== "");
  return [
    {
      texts: [
        {
          text,
          at: (found) => atChoicePart(first, "content", found),
          atEnd: (found) => atChoicePart(last, "content", found),
        },
      ],
      json: isRefused ? [] : [text],
      calls: calls.flatMap(({ name, deltas: [delta] }) =>
        delta ? [{ name, at: (found) => atChoicePart(delta.entry, "name", found) }] : [],
      ),
      isWhole: finish !== undefined && finish !== "length" && finish !== "content_filter",
      isCut: finish === "length",
      atEnd: (found) => atChoicePart(end, "finish_reason", found),
    },
  ];
}

function textIn({ delta, choice }: ChoicePart): string {
  const text = delta.content ?? choice.text;
  return typeof text === "string" ? text : "";
}

/** Rules about a streamed answer and its request. */
export const streamRequestRules: Rules<StreamView> = {
  ...on(chatAndCompletions, requestRules(answerOf, { stop: "request/stop", limit: "request/max-tokens" })),
  ...on(
    chat,
    requestRules(answerOf, {
      required: "request/required",
      named: "request/named",
      noTools: "request/no-tools",
      parallel: "request/parallel",
      knownTool: "tool/known-name",
      json: "request/json",
      reasoningInText: "delta/reasoning-in-content",
      callInText: "delta/call-in-content",
      specialToken: "delta/special-token",
    }),
  ),
};
