import { chatChunk } from "../../../../wire/apis/chat/schema.ts";
import { membersOf } from "../../../../wire/apis/members.ts";
import { callIn, reasoningTagIn, specialTokenIn } from "../violations.ts";
import { atChoicePart, shown } from "../place.ts";
import type { StreamRule, Violation } from "../rule.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { ChoicePart, StreamView } from "../view.ts";
import { chat, deltaContent, hasContent, streamRulesOf } from "./stream-rule.ts";

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
export const chatDeltaRules: readonly StreamRule[] = streamRulesOf(chat, [
  {
    id: "stream/role-first",
    severity: "error",
    concern: "text is lost or wrong",
    says: "The first delta of each choice carries the role.",
    source: "recordings 409 of 409; TensorZero #1265, tabbyAPI",
    breaks: ["official SDK helpers (.stream() throws 'missing role')", "org-ai", "Witsy"],
    *judge(view) {
      for (const [first] of view.choices.values())
        if (first && !("role" in first.delta)) yield atChoicePart(first, "delta", "a first delta without role");
    },
  },
  {
    id: "stream/role-once",
    severity: "warning",
    concern: "text is lost or wrong",
    says: "The role is sent once for each choice, not on every delta.",
    source: "recordings 6528 of 6528 chunks; LocalAI #340",
    breaks: ["org-ai (a new message each time)", "Kilo"],
    *judge(view) {
      for (const { entry, position } of deltas(view))
        if (position > 0 && "role" in entry.delta) yield atChoicePart(entry, "role", "the role again");
    },
  },
  {
    id: "stream/role-value",
    severity: "error",
    concern: "text is lost or wrong",
    says: "The role is assistant.",
    source: "specification; recordings 409 of 409",
    breaks: ["official SDK helpers", "AI SDK (schema)"],
    judge: (view) => wrongDelta(view, "role", (value) => (value === "assistant" ? undefined : `role ${shown(value)}`)),
  },
  {
    id: "delta/object",
    severity: "error",
    concern: "the stream cannot be read",
    says: "Every choice has a delta, an object.",
    source: "specification: delta is required",
    breaks: ["official SDKs", "the naive loop over choices[0].delta.content"],
    *judge(view) {
      for (const { entry } of deltas(view))
        if (!isObject(entry.choice.delta)) yield atChoicePart(entry, "delta", `delta is ${shown(entry.choice.delta)}`);
    },
  },
  {
    id: "delta/content-type",
    severity: "error",
    concern: "text is lost or wrong",
    says: "content is a string, or null.",
    source: "specification; some gateways send parts or numbers",
    breaks: ["official SDK helpers", "AI SDK (schema)", "every client that concatenates"],
    judge: (view) =>
      wrongDelta(view, "content", (value) =>
        value === null || typeof value === "string" ? undefined : `content is ${shown(value)}`,
      ),
  },
  {
    id: "delta/content-null",
    severity: "warning",
    concern: "text is lost or wrong",
    says: "content is null in the first delta only.",
    source: "recordings 6528 of 6528 chunks (audio aside)",
    breaks: ["clients that concatenate ('null' or 'None' in the text)"],
    *judge(view) {
      for (const { entry, position } of deltas(view)) {
        if (position > 0 && entry.delta.content === null && !("audio" in entry.delta))
          yield atChoicePart(entry, "content", "a null content later on");
      }
    },
  },
  {
    id: "delta/content-empty",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "After the first delta, no content is empty.",
    source: "recordings: none after the first delta",
    *judge(view) {
      for (const { entry, position } of deltas(view)) {
        // A token that is only part of a character has its log probabilities and no text yet.
        if (position > 0 && entry.delta.content === "" && !isObject(entry.choice.logprobs))
          yield atChoicePart(entry, "content", "an empty content");
      }
    },
  },
  {
    id: "delta/empty",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "A delta is empty only in the chunk with the finish reason.",
    source: "recordings 397 of 397",
    *judge(view) {
      for (const { entry } of deltas(view)) {
        if (
          isObject(entry.choice.delta) &&
          Object.keys(entry.delta).length === 0 &&
          entry.choice.finish_reason === null
        )
          yield atChoicePart(entry, "delta", "an empty delta");
      }
    },
  },
  {
    id: "delta/null-calls",
    severity: "warning",
    concern: "tool calls break",
    says: "tool_calls, tool_call_id and function_call are absent when there is no value, never null.",
    source: "specification (not nullable); MLX-Textgen",
    breaks: ["clients that test for the key", "typed clients (Go, Rust, Java, C#)"],
    *judge(view) {
      for (const name of ["tool_calls", "tool_call_id", "function_call"]) {
        yield* wrongDelta(view, name, (value) => (value === null ? `${name} is null` : undefined));
      }
    },
  },
  {
    id: "delta/one-field",
    severity: "warning",
    concern: "text is lost or wrong",
    says: "A delta has only one of text, reasoning, refusal and tool calls.",
    source: "recordings; MLX-Textgen, llama-stack",
    breaks: ["clients with an if / else if over the fields (they drop the second)"],
    *judge(view) {
      for (const { entry } of deltas(view)) {
        const filled = ["content", "reasoning_content", "refusal", "tool_calls", "function_call"].filter((name) => {
          const value = entry.delta[name];
          return value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);
        });
        if (filled[1] !== undefined) yield atChoicePart(entry, filled[1], `${filled.join(" and ")} in one delta`);
      }
    },
  },
  {
    id: "delta/refusal-type",
    severity: "error",
    concern: "text is lost or wrong",
    says: "refusal is a string, or null.",
    source: "specification",
    breaks: ["official SDK helpers", "typed clients (Go, Rust, Java, C#)"],
    judge: (view) =>
      wrongDelta(view, "refusal", (value) =>
        value === null || typeof value === "string" ? undefined : `refusal is ${shown(value)}`,
      ),
  },
  {
    id: "delta/reasoning-name",
    severity: "warning",
    concern: "text is lost or wrong",
    says: "Reasoning is sent as reasoning_content or reasoning, the names that clients read.",
    source: "source code of AI SDK, LangChain, Open WebUI and Cline, which read these two names",
    breaks: ["Open WebUI", "Cline/Roo/Kilo"],
    *judge(view) {
      for (const { entry } of deltas(view)) {
        for (const name of otherReasoning)
          if (name in entry.delta) yield atChoicePart(entry, name, `reasoning as ${name}`);
      }
    },
  },
  {
    id: "delta/reasoning-type",
    severity: "error",
    concern: "text is lost or wrong",
    says: "reasoning_content and reasoning are strings, or null.",
    source: "source code of AI SDK (schema) and LangChain",
    breaks: ["AI SDK (schema)", "every client that concatenates"],
    *judge(view) {
      for (const name of reasoningMembers) {
        yield* wrongDelta(view, name, (value) =>
          value === null || typeof value === "string" ? undefined : `${name} is ${shown(value)}`,
        );
      }
    },
  },
  {
    id: "delta/reasoning-in-content",
    severity: "warning",
    concern: "text is lost or wrong",
    says: "content does not begin with reasoning in <think> or similar tags.",
    source: "LM Studio #1569, opencode #43770",
    breaks: ["clients that show content", "structured output (the JSON begins with reasoning)"],
    *judge(view) {
      for (const track of view.choices.values()) {
        const text = deltaContent(track);
        const first = track.find(hasContent);
        const reasoning = reasoningTagIn(text);
        if (first && reasoning !== undefined)
          yield atChoicePart(first, "content", `content that begins ${shown(reasoning)}`);
      }
    },
  },
  {
    id: "delta/call-in-content",
    severity: "warning",
    concern: "tool calls break",
    says: "content does not contain tool calls in the model's own markup.",
    source: "LM Studio #2115, oMLX #2565",
    breaks: ["every agent: it sees text and no call"],
    shown: (view) =>
      Array.isArray(view.exchange.request.body?.tools) && view.exchange.request.body.tool_choice !== "none",
    *judge(view) {
      for (const track of view.choices.values()) {
        // A call that the limit cut before its name was complete can only be shown as the text that it is.
        if (track.some(({ choice }) => choice.finish_reason === "length")) continue;
        const first = track.find(hasContent);
        const markup = callIn(deltaContent(track));
        if (markup !== undefined && first) yield atChoicePart(first, "content", `${markup} in content`);
      }
    },
  },
  {
    id: "delta/special-token",
    severity: "warning",
    concern: "text is lost or wrong",
    says: "content does not contain special tokens of the model.",
    source: "vLLM #2538, mlx-examples #489",
    breaks: ["users see <|im_end|>"],
    *judge(view) {
      for (const track of view.choices.values()) {
        const last = track.findLast(hasContent);
        const text = deltaContent(track);
        const special = specialTokenIn(text);
        if (special !== undefined && last) yield atChoicePart(last, "content", `content that ends with ${special}`);
      }
    },
  },
  {
    id: "delta/after-finish",
    severity: "error",
    concern: "the answer seems to end wrongly",
    says: "A choice has no delta after its finish reason.",
    source: "recordings 409 of 409 (audio's expires_at aside); LiteLLM #376",
    breaks: ["clients that stop at the finish reason (they lose the rest)"],
    *judge(view) {
      for (const { entry, finished } of deltas(view)) {
        if (finished && Object.keys(entry.delta).some((name) => name !== "audio"))
          yield atChoicePart(entry, "delta", "a delta after the finish reason");
      }
    },
  },
  {
    id: "delta/known-members",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "A delta has no members beyond OpenAI's and the reasoning fields.",
    source: "specification; recordings",
    *judge(view) {
      for (const { entry } of deltas(view)) {
        for (const name of Object.keys(entry.delta))
          if (!deltaMembers.has(name)) yield atChoicePart(entry, name, `the member ${name}`);
      }
    },
  },
  {
    id: "text/present",
    severity: "error",
    concern: "text is lost or wrong",
    says: "Every choice of a completions chunk has text, a string.",
    source: "specification: text is required",
    breaks: ["official SDKs", "the naive loop over choices[0].text"],
    endpoints: ["completions"],
    *judge(view) {
      for (const { entry } of deltas(view))
        if (typeof entry.choice.text !== "string")
          yield atChoicePart(entry, "text", `text is ${shown(entry.choice.text)}`);
    },
  },
  {
    id: "text/after-finish",
    severity: "error",
    concern: "the answer seems to end wrongly",
    says: "No text comes after a choice's finish reason.",
    source: "recordings 30 of 30",
    breaks: ["clients that stop at the finish reason (they lose the rest)"],
    endpoints: ["completions"],
    *judge(view) {
      for (const { entry, finished } of deltas(view))
        if (finished && entry.choice.text !== "") yield atChoicePart(entry, "text", "text after the finish reason");
    },
  },
]);
