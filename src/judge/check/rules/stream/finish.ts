import { chatChunk } from "../../../../wire/apis/chat/schema.ts";
import { errorObjectViolation } from "../violations.ts";
import { atChoicePart, atEnd, atFrame, atMember, shown } from "../place.ts";
import type { StreamRule } from "../rule.ts";
import type { ChoicePart, Chunk, StreamView } from "../view.ts";
import { chat, chatAndCompletions, hasError, streamRulesOf } from "./stream-rule.ts";

const hidden = "errors look like answers";
const endsWrongly = "the answer seems to end wrongly";

const finishReason = chatChunk.shape.choices.element.shape.finish_reason;

/** Returns the deltas of a choice that have a finish reason. */
function finishes(track: readonly ChoicePart[]): ChoicePart[] {
  return track.filter((entry) => entry.choice.finish_reason !== undefined && entry.choice.finish_reason !== null);
}

function hasCalls(track: readonly ChoicePart[]): boolean {
  return track.some((entry) => Array.isArray(entry.delta.tool_calls) && entry.delta.tool_calls.length > 0);
}

/** Rules about the end of a choice. Source: specification, `finish_reason`; recordings; issues as named. */
export const finishRules: readonly StreamRule[] = streamRulesOf(chatAndCompletions, [
  {
    id: "finish/present",
    severity: "error",
    concern: endsWrongly,
    says: "Every choice ends with a finish reason; without one the answer was cut.",
    source: "specification; recordings 409 of 409; Bifrost #5546",
    breaks: [
      "AI SDK (finish reason 'unknown')",
      "official SDK helpers (.stream() throws)",
      "agents (they go on or hang)",
    ],
    shown: (view) => !hasError(view),
    *judge(view) {
      const { body } = view.exchange.response;
      if (view.choices.size === 0) yield atEnd(body, "no choice at all");
      for (const [index, track] of view.choices)
        if (finishes(track).length === 0) yield atEnd(body, `choice ${index} has no finish reason`);
    },
  },
  {
    id: "finish/once",
    severity: "error",
    concern: endsWrongly,
    says: "A choice has one finish reason.",
    source: "recordings 409 of 409",
    breaks: ["clients that act on each (agents run tools twice)"],
    *judge(view) {
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
  },
  {
    id: "finish/value",
    severity: "error",
    concern: endsWrongly,
    says: "finish_reason is stop, length, tool_calls, content_filter, function_call, or null.",
    source: "specification: finish_reason; servers that send eos, end_turn, the empty string",
    breaks: ["typed clients (Go, Rust, Java, C#)", "AI SDK (schema)"],
    *judge(view) {
      for (const track of view.choices.values()) {
        for (const entry of finishes(track)) {
          if (!finishReason.safeParse(entry.choice.finish_reason).success)
            yield atChoicePart(entry, "finish_reason", `finish_reason ${shown(entry.choice.finish_reason)}`);
        }
      }
    },
  },
  {
    id: "finish/own-chunk",
    severity: "warning",
    concern: "text is lost or wrong",
    says: "The finish reason is sent in a chunk of its own, with an empty delta.",
    source: "recordings 397 of 397; tabbyAPI, llama-stack",
    breaks: ["clients that stop reading a chunk at its finish reason (they lose the last words)"],
    endpoints: chat,
    *judge(view) {
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
  },
  {
    id: "finish/empty-delta",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "The delta next to the finish reason is {}.",
    source: "recordings 397 of 397",
    endpoints: chat,
    *judge(view) {
      for (const track of view.choices.values()) {
        for (const entry of finishes(track)) {
          const names = Object.keys(entry.delta);
          if (names.length > 0 && names.every((name) => entry.delta[name] === null || entry.delta[name] === ""))
            yield atChoicePart(entry, "delta", `${names.join(", ")} without a value`);
        }
      }
    },
  },
  {
    id: "finish/calls",
    severity: "error",
    concern: "tool calls break",
    says: "A choice with tool calls ends with tool_calls (or length), unless the request named one tool.",
    source: "specification; recordings (named: stop, 9 of 9); LiteLLM #35663, #12481",
    breaks: ["AI SDK, LangChain, Cline/Roo/Kilo (they do not run the tools)"],
    follows: ["finish/own-chunk"],
    endpoints: chat,
    *judge(view) {
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
  },
  {
    id: "finish/calls-made",
    severity: "error",
    concern: "tool calls break",
    says: "A choice that ends with tool_calls has tool calls.",
    source: "specification",
    breaks: ["agents (they wait for calls that never come)"],
    endpoints: chat,
    *judge(view) {
      for (const track of view.choices.values()) {
        if (hasCalls(track)) continue;
        for (const entry of finishes(track))
          if (entry.choice.finish_reason === "tool_calls")
            yield atChoicePart(entry, "finish_reason", "tool_calls without a call");
      }
    },
  },
]);

function errors(view: StreamView): readonly Chunk[] {
  return view.chunks.filter((chunk) => "error" in chunk.value);
}

/** Rules about an error in a stream. Source: specification, `Error`; what the official SDKs do with it. */
export const errorRules: readonly StreamRule[] = streamRulesOf(chatAndCompletions, [
  {
    id: "error/shape",
    severity: "error",
    concern: hidden,
    says: 'An error in a stream is {"error": {message, type, param, code}} with a message.',
    source: "specification: Error; the official SDKs throw on `error`",
    breaks: ["official SDKs (an exception without a message)", "clients that read error.message"],
    shown: hasError,
    *judge(view) {
      for (const chunk of errors(view)) {
        const found = errorObjectViolation(chunk.value.error);
        if (found !== undefined) yield atMember(chunk, "error", found);
      }
    },
  },
  {
    id: "error/own-form",
    severity: "error",
    concern: hidden,
    says: 'An error does not have another form, such as {"object": "error"} or {"detail": …}.',
    source: "error events of vLLM (fms-guardrails-orchestrator #436), FastAPI's detail",
    breaks: ["official SDKs (they see an empty chunk and a clean end)"],
    *judge(view) {
      for (const chunk of view.chunks) {
        const { value } = chunk;
        if (!("error" in value) && (value.object === "error" || ("detail" in value && !("choices" in value))))
          yield atFrame(chunk.frame, "an error in a form of its own");
      }
    },
  },
  {
    id: "error/last",
    severity: "error",
    concern: hidden,
    says: "After an error only [DONE] follows: no finish reason is invented, no text continues.",
    source: "the official SDKs stop at an error; LiteLLM #40578 (an invented finish reason hides it)",
    breaks: ["clients that take a later finish reason for success"],
    shown: hasError,
    *judge(view) {
      const [first] = errors(view);
      const next = first && view.chunks[first.index + 1];
      if (next) yield atFrame(next.frame, "a chunk after an error");
    },
  },
  {
    id: "error/no-choices",
    severity: "warning",
    concern: hidden,
    says: "An error is alone in its chunk.",
    source: "specification; OpenRouter sends choices next to it",
    breaks: ["clients that look at choices first"],
    shown: hasError,
    *judge(view) {
      for (const chunk of errors(view))
        if (chunk.choices.length > 0) yield atMember(chunk, "error", "an error next to choices");
    },
  },
]);
