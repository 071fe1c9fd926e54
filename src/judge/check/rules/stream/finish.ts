import { atChoicePart, atEnd, atFrame, atMember, shown } from "../place.ts";
import type { ChoicePart, Chunk, StreamView } from "../view.ts";
import { chat, chatAndCompletions, hasError } from "./stream-rule.ts";
import { type Rules, notShown, on, whenAll } from "../rule.ts";

/** Returns the deltas of a choice that have a finish reason. */
function finishes(track: readonly ChoicePart[]): ChoicePart[] {
  return track.filter((entry) => entry.choice.finish_reason !== undefined && entry.choice.finish_reason !== null);
}

function hasCalls(track: readonly ChoicePart[]): boolean {
  return track.some((entry) => Array.isArray(entry.delta.tool_calls) && entry.delta.tool_calls.length > 0);
}

/** Rules about the end of a choice. Source: specification, `finish_reason`; recordings; issues as named. */
export const finishRules: Rules<StreamView> = on(chatAndCompletions, {
  *"finish/present"(view) {
    if (hasError(view)) return notShown;
    const { body } = view.exchange.response;
    if (view.choices.size === 0) yield atEnd(body, "no choice at all");
    for (const [index, track] of view.choices)
      if (finishes(track).length === 0) yield atEnd(body, `choice ${index} has no finish reason`);
  },
  *"finish/once"(view) {
    for (const track of view.choices.values()) {
      const [first, ...rest] = finishes(track);
      // OpenAI's completions repeat "length" in an empty chunk after the text that carried it (recorded).
      const more = rest.filter(
        ({ choice }) => !(choice.text === "" && choice.finish_reason === first?.choice.finish_reason),
      );
      for (const entry of more)
        yield atChoicePart(entry, "finish_reason", `a further finish reason ${shown(entry.choice.finish_reason)}`);
    }
  },
  *"finish/own-chunk"(view) {
    if (!chat.includes(view.exchange.endpoint)) return notShown;
    for (const track of view.choices.values()) {
      for (const entry of finishes(track)) {
        const filled = Object.keys(entry.delta).filter(
          (name) => entry.delta[name] !== null && entry.delta[name] !== "",
        );
        if (filled.length > 0)
          yield atChoicePart(entry, "finish_reason", `the finish reason next to ${filled.join(", ")}`);
      }
    }
  },
  *"finish/empty-delta"(view) {
    if (!chat.includes(view.exchange.endpoint)) return notShown;
    for (const track of view.choices.values()) {
      for (const entry of finishes(track)) {
        const names = Object.keys(entry.delta);
        if (names.length > 0 && names.every((name) => entry.delta[name] === null || entry.delta[name] === ""))
          yield atChoicePart(entry, "delta", `${names.join(", ")} without a value`);
      }
    }
  },
  *"finish/calls"(view) {
    if (!chat.includes(view.exchange.endpoint)) return notShown;
    const choice = view.exchange.request.body?.tool_choice;
    const named = typeof choice === "object" && choice !== null;
    for (const track of view.choices.values()) {
      if (!hasCalls(track)) continue;
      for (const entry of finishes(track)) {
        const reason = entry.choice.finish_reason;
        if (reason === "function_call" || (reason === "stop" && !named))
          yield atChoicePart(entry, "finish_reason", `${shown(reason)} after tool calls`);
      }
    }
  },
  *"finish/calls-made"(view) {
    if (!chat.includes(view.exchange.endpoint)) return notShown;
    for (const track of view.choices.values()) {
      if (hasCalls(track)) continue;
      for (const entry of finishes(track))
        if (entry.choice.finish_reason === "tool_calls")
          yield atChoicePart(entry, "finish_reason", "tool_calls without a call");
    }
  },
});

function errors(view: StreamView): readonly Chunk[] {
  return view.chunks.filter((chunk) => "error" in chunk.value);
}

/** Rules about an error in a stream. Source: specification, `Error`; what the official SDKs do with it. */
export const errorRules: Rules<StreamView> = on(chatAndCompletions, {
  ...whenAll(hasError, {
    *"error/last"(view) {
      const [first] = errors(view);
      const next = first && view.chunks[first.index + 1];
      if (next) yield atFrame(next.frame, "a chunk after an error");
    },
    *"error/no-choices"(view) {
      for (const chunk of errors(view))
        if (chunk.choices.length > 0) yield atMember(chunk, "error", "an error next to choices");
    },
  }),
  *"error/own-form"(view) {
    for (const chunk of view.chunks) {
      const { value } = chunk;
      if (!("error" in value) && (value.object === "error" || ("detail" in value && !("choices" in value))))
        yield atFrame(chunk.frame, "an error in a form of its own");
    }
  },
});
