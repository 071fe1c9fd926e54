import { errorOffence } from "../error-object.ts";
import { atFrame, atMember } from "../place.ts";
import type { StreamRule } from "../rule.ts";
import type { Chunk, StreamView } from "../view.ts";

const both = ["chat", "completions"] as const;
const hidden = "errors look like answers";

function errors(view: StreamView): readonly Chunk[] {
  return view.chunks.filter((chunk) => "error" in chunk.value);
}

/** An error inside a stream. Source: specification, `Error`; what the official SDKs do with it. */
export const errorRules: readonly StreamRule[] = [
  {
    id: "error/shape",
    severity: "error",
    concern: hidden,
    says: 'An error in a stream is {"error": {message, type, param, code}} with a message.',
    source: "specification: Error; the official SDKs throw on `error`",
    breaks: ["official SDKs (an exception without a message)", "clients that read error.message"],
    judges: "stream",
    endpoints: both,
    shown: (view) => errors(view).length > 0,
    *judge(view) {
      for (const chunk of errors(view)) {
        const found = errorOffence(chunk.value.error);
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
    judges: "stream",
    endpoints: both,
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
    says: "After an error only [DONE] follows: no finish reason is invented, no text goes on.",
    source: "the official SDKs stop at an error; LiteLLM #40578 (an invented finish reason hides it)",
    breaks: ["clients that take a later finish reason for success"],
    judges: "stream",
    endpoints: both,
    shown: (view) => errors(view).length > 0,
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
    says: "An error stands alone in its chunk.",
    source: "specification; OpenRouter sends choices beside it",
    breaks: ["clients that look at choices first"],
    judges: "stream",
    endpoints: both,
    shown: (view) => errors(view).length > 0,
    *judge(view) {
      for (const chunk of errors(view))
        if (chunk.choices.length > 0) yield atMember(chunk, "error", "an error beside choices");
    },
  },
];
