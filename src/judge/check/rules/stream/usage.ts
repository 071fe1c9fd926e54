import { requestsUsage } from "../exchange.ts";
import { atEnd, atFrame, atMember, shown } from "../place.ts";
import type { Violation, StreamRule } from "../rule.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { type Chunk, type Json, type StreamView } from "../view.ts";
import { usageViolation } from "../violations.ts";
import { chat, chatAndCompletions, hasContent, hasError, streamRulesOf } from "./stream-rule.ts";

const wrongCounts = "token counts are wrong";

function withUsage(view: StreamView): (Chunk & { usage: Json })[] {
  return view.chunks.flatMap((chunk) => (isObject(chunk.value.usage) ? [{ ...chunk, usage: chunk.value.usage }] : []));
}

function* counted(view: StreamView, kind: "type" | "sum" | "details"): Generator<Violation> {
  for (const chunk of withUsage(view)) {
    const found = usageViolation(chunk.usage, kind);
    if (found !== undefined) yield atMember(chunk, "usage", found);
  }
}

/** Rules about token counts in a stream. Source: specification, `stream_options.include_usage`; recordings; issues as named. */
export const streamUsageRules: readonly StreamRule[] = streamRulesOf(chatAndCompletions, [
  {
    id: "usage/uninvited",
    severity: "warning",
    concern: wrongCounts,
    says: "Usage is sent only when stream_options.include_usage requests it.",
    source: "specification; recordings 409 of 409",
    breaks: ["the naive loop over chunk.choices[0] (the usage chunk has none)", "clients that add counts up"],
    shown: (view) => requestsUsage(view.exchange) === false,
    *judge(view) {
      for (const chunk of withUsage(view)) yield atMember(chunk, "usage", "usage that was not requested");
    },
  },
  {
    id: "usage/key-uninvited",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "Without include_usage there is no usage key, not even null.",
    source: "recordings",
    shown: (view) => requestsUsage(view.exchange) === false,
    *judge(view) {
      const chunk = view.chunks.find((one) => one.value.usage === null);
      if (chunk) yield atMember(chunk, "usage", "a null usage");
    },
  },
  {
    id: "usage/missing",
    severity: "error",
    concern: wrongCounts,
    says: "With include_usage the stream contains usage.",
    source: "specification; recordings 249 of 249",
    breaks: ["cost accounting", "LangChain (no usage_metadata)"],
    follows: ["usage/uninvited"],
    shown: (view) => requestsUsage(view.exchange) === true && !hasError(view),
    *judge(view) {
      if (withUsage(view).length === 0) yield atEnd(view.exchange.response.body, "no usage");
    },
  },
  {
    id: "usage/once",
    severity: "warning",
    concern: wrongCounts,
    says: "Usage is sent once.",
    source: "recordings 249 of 249; LocalAI sends it on every chunk",
    breaks: ["clients that add counts up"],
    follows: ["usage/uninvited"],
    *judge(view) {
      for (const chunk of withUsage(view).slice(1)) yield atMember(chunk, "usage", "usage again");
    },
  },
  {
    id: "usage/own-chunk",
    severity: "warning",
    concern: wrongCounts,
    says: "Usage is sent in a chunk of its own with choices: [], after the finish reasons and before [DONE].",
    source:
      "specification: 'choices will be an empty array'; recordings 246 of 249 (moderation and audio chunks may follow)",
    breaks: ["clients that look for usage where choices is empty"],
    follows: ["usage/uninvited", "usage/once"],
    *judge(view) {
      for (const chunk of withUsage(view)) {
        if (chunk.choices.length > 0) yield atMember(chunk, "usage", "usage next to a choice");
        const later = view.chunks
          .slice(chunk.index + 1)
          .find((next) => next.choices.some(({ delta }) => !(isObject(delta) && "audio" in delta)));
        if (later) yield atFrame(later.frame, "a choice after the usage chunk");
      }
    },
  },
  {
    id: "usage/null-before",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "With include_usage every other chunk has usage: null.",
    source: "specification; recordings: every chunk",
    shown: (view) => requestsUsage(view.exchange) === true,
    *judge(view) {
      const chunk = view.chunks.find(
        (one) =>
          !("usage" in one.value) &&
          !("error" in one.value) &&
          !one.choices.some((choice) => isObject(choice.delta) && "audio" in choice.delta),
      );
      if (chunk) yield atFrame(chunk.frame, "a chunk without a usage key");
    },
  },
  {
    id: "usage/type",
    severity: "error",
    concern: wrongCounts,
    says: "prompt_tokens, completion_tokens and total_tokens are present, and all token counts are integers, 0 or more.",
    source: "specification: CompletionUsage",
    breaks: ["typed clients (Go, Rust, Java, C#)", "cost accounting"],
    shown: (view) => withUsage(view).length > 0,
    judge: (view) => counted(view, "type"),
  },
  {
    id: "usage/sum",
    severity: "error",
    concern: wrongCounts,
    says: "total_tokens is the sum of prompt_tokens and completion_tokens.",
    source: "specification; recordings 249 of 249",
    breaks: ["cost accounting"],
    shown: (view) => withUsage(view).length > 0,
    judge: (view) => counted(view, "sum"),
  },
  {
    id: "usage/details",
    severity: "warning",
    concern: wrongCounts,
    says: "cached_tokens is at most prompt_tokens, and reasoning_tokens at most completion_tokens.",
    source: "specification",
    breaks: ["cost accounting"],
    shown: (view) => withUsage(view).length > 0,
    judge: (view) => counted(view, "details"),
  },
  {
    id: "usage/zero",
    severity: "error",
    concern: wrongCounts,
    says: "completion_tokens is not 0 after text, and the counts are not all 0.",
    source: "LiteLLM #8349, LM Studio #1602",
    breaks: ["cost accounting", "clients that trim their history by it"],
    endpoints: chat,
    shown: (view) => withUsage(view).length > 0,
    *judge(view) {
      const isWritten = [...view.choices.values()].some((track) => track.some(hasContent));
      for (const chunk of withUsage(view)) {
        if (chunk.usage.prompt_tokens === 0 && chunk.usage.completion_tokens === 0)
          yield atMember(chunk, "usage", "all counts are 0");
        else if (isWritten && chunk.usage.completion_tokens === 0)
          yield atMember(chunk, "completion_tokens", `completion_tokens ${shown(0)} after text`);
      }
    },
  },
]);
