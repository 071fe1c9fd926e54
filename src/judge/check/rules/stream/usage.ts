import { requestsUsage } from "../exchange.ts";
import { atEnd, atFrame, atMember, shown } from "../place.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { type Chunk, type Json, type StreamView } from "../view.ts";
import { usageViolation } from "../violations.ts";
import { chat, chatAndCompletions, hasContent, hasError } from "./stream-rule.ts";
import { type Rules, type Violation, notShown, on, whenAll } from "../rule.ts";

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
export const streamUsageRules: Rules<StreamView> = on(chatAndCompletions, {
  *"usage/uninvited"(view) {
    if (requestsUsage(view.exchange) !== false) return notShown;
    for (const chunk of withUsage(view)) yield atMember(chunk, "usage", "usage that was not requested");
  },
  *"usage/key-uninvited"(view) {
    if (requestsUsage(view.exchange) !== false) return notShown;
    const chunk = view.chunks.find((one) => one.value.usage === null);
    if (chunk) yield atMember(chunk, "usage", "a null usage");
  },
  *"usage/missing"(view) {
    if (requestsUsage(view.exchange) !== true || hasError(view)) return notShown;
    if (withUsage(view).length === 0) yield atEnd(view.exchange.response.body, "no usage");
  },
  *"usage/once"(view) {
    for (const chunk of withUsage(view).slice(1)) yield atMember(chunk, "usage", "usage again");
  },
  *"usage/own-chunk"(view) {
    for (const chunk of withUsage(view)) {
      if (chunk.choices.length > 0) yield atMember(chunk, "usage", "usage next to a choice");
      const later = view.chunks
        .slice(chunk.index + 1)
        .find((next) => next.choices.some(({ delta }) => !(isObject(delta) && "audio" in delta)));
      if (later) yield atFrame(later.frame, "a choice after the usage chunk");
    }
  },
  *"usage/null-before"(view) {
    if (requestsUsage(view.exchange) !== true) return notShown;
    const chunk = view.chunks.find(
      (one) =>
        !("usage" in one.value) &&
        !("error" in one.value) &&
        !one.choices.some((choice) => isObject(choice.delta) && "audio" in choice.delta),
    );
    if (chunk) yield atFrame(chunk.frame, "a chunk without a usage key");
  },
  ...whenAll((view) => withUsage(view).length > 0, {
    "usage/type": (view) => counted(view, "type"),
    "usage/sum": (view) => counted(view, "sum"),
    "usage/details": (view) => counted(view, "details"),
  }),
  *"usage/zero"(view) {
    if (!chat.includes(view.exchange.endpoint)) return notShown;
    if (withUsage(view).length === 0) return notShown;
    const isWritten = [...view.choices.values()].some((track) => track.some(hasContent));
    for (const chunk of withUsage(view)) {
      if (chunk.usage.prompt_tokens === 0 && chunk.usage.completion_tokens === 0)
        yield atMember(chunk, "usage", "all counts are 0");
      else if (isWritten && chunk.usage.completion_tokens === 0)
        yield atMember(chunk, "completion_tokens", `completion_tokens ${shown(0)} after text`);
    }
  },
});
