import { chatChunk } from "../../../../wire/apis/chat/schema.ts";
import { membersOf } from "../../../../wire/apis/members.ts";
import { atChoicePart, shown } from "../place.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { ChoicePart, StreamView } from "../view.ts";
import { chat } from "./stream-rule.ts";
import { type Rules, type Violation, on } from "../rule.ts";

/** The members for reasoning that clients read, and other ones that servers send. */
const reasoningMembers = ["reasoning_content", "reasoning"];
const otherReasoning = ["reasoning_text", "thinking", "thoughts"];

const deltaMembers: ReadonlySet<string> = new Set([
  ...membersOf(chatChunk.shape.choices.element.shape.delta).map(({ name }) => name),
  "annotations",
  "tool_call_id",
  ...reasoningMembers,
  ...otherReasoning,
]);

function* deltas(view: StreamView): Generator<{ entry: ChoicePart; position: number; finished: boolean }> {
  for (const track of view.choices.values()) {
    let finished = false;
    for (const [position, entry] of track.entries()) {
      yield { entry, position, finished };
      finished ||= typeof entry.choice.finish_reason === "string";
    }
  }
}

function* wrongDelta(
  view: StreamView,
  name: string,
  found: (value: unknown) => string | undefined,
): Generator<Violation> {
  for (const { entry } of deltas(view)) {
    if (!(name in entry.delta)) continue;
    const problem = found(entry.delta[name]);
    if (problem !== undefined) yield atChoicePart(entry, name, problem);
  }
}

/** Rules about the members of a delta. Source: specification, `ChatCompletionStreamResponseDelta`; recordings. */
export const chatDeltaRules: Rules<StreamView> = on(chat, {
  *"stream/role-first"(view) {
    for (const [first] of view.choices.values())
      if (first && !("role" in first.delta)) yield atChoicePart(first, "delta", "a first delta without role");
  },
  *"stream/role-once"(view) {
    for (const { entry, position } of deltas(view))
      if (position > 0 && "role" in entry.delta) yield atChoicePart(entry, "role", "the role again");
  },
  "stream/role-value": (view) =>
    wrongDelta(view, "role", (value) => (value === "assistant" ? undefined : `role ${shown(value)}`)),
  *"delta/content-null"(view) {
    for (const { entry, position } of deltas(view)) {
      if (position > 0 && entry.delta.content === null && !("audio" in entry.delta))
        yield atChoicePart(entry, "content", "a null content later on");
    }
  },
  *"delta/content-empty"(view) {
    for (const { entry, position } of deltas(view)) {
      // A token that is only part of a character has its log probabilities and no text yet.
      if (position > 0 && entry.delta.content === "" && !isObject(entry.choice.logprobs))
        yield atChoicePart(entry, "content", "an empty content");
    }
  },
  *"delta/empty"(view) {
    for (const { entry } of deltas(view)) {
      if (isObject(entry.choice.delta) && Object.keys(entry.delta).length === 0 && entry.choice.finish_reason === null)
        yield atChoicePart(entry, "delta", "an empty delta");
    }
  },
  *"delta/null-calls"(view) {
    for (const name of ["tool_calls", "tool_call_id", "function_call"]) {
      yield* wrongDelta(view, name, (value) => (value === null ? `${name} is null` : undefined));
    }
  },
  *"delta/one-field"(view) {
    for (const { entry } of deltas(view)) {
      const filled = ["content", "reasoning_content", "refusal", "tool_calls", "function_call"].filter((name) => {
        const value = entry.delta[name];
        return value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);
      });
      if (filled[1] !== undefined) yield atChoicePart(entry, filled[1], `${filled.join(" and ")} in one delta`);
    }
  },
  *"delta/reasoning-name"(view) {
    for (const { entry } of deltas(view)) {
      for (const name of otherReasoning)
        if (name in entry.delta) yield atChoicePart(entry, name, `reasoning as ${name}`);
    }
  },
  *"delta/reasoning-type"(view) {
    for (const name of reasoningMembers) {
      yield* wrongDelta(view, name, (value) =>
        value === null || typeof value === "string" ? undefined : `${name} is ${shown(value)}`,
      );
    }
  },
  *"delta/after-finish"(view) {
    for (const { entry, finished } of deltas(view)) {
      if (finished && Object.keys(entry.delta).some((name) => name !== "audio"))
        yield atChoicePart(entry, "delta", "a delta after the finish reason");
    }
  },
  *"delta/known-members"(view) {
    for (const { entry } of deltas(view)) {
      for (const name of Object.keys(entry.delta))
        if (!deltaMembers.has(name)) yield atChoicePart(entry, name, `the member ${name}`);
    }
  },
});

/** Rules about the text of legacy completions. */
export const completionTextRules: Rules<StreamView> = on(["completions"], {
  *"text/after-finish"(view) {
    for (const { entry, finished } of deltas(view))
      if (finished && entry.choice.text !== "") yield atChoicePart(entry, "text", "text after the finish reason");
  },
});
