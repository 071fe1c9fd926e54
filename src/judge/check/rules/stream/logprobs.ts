import { requestMember } from "../exchange.ts";
import { textOfTokens, tokenViolation } from "../violations.ts";
import { atChoicePart, atEnd } from "../place.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { ChoicePart, StreamView } from "../view.ts";
import { chat, deltaContent, hasContent } from "./stream-rule.ts";
import { type Rules, type Violation, notShown, on, whenAll } from "../rule.ts";

interface PlacedToken {
  readonly entry: ChoicePart;
  readonly token: unknown;
}

/** Yields every token of every chunk, of content and refusals. */
function* tokens(view: StreamView): Generator<PlacedToken> {
  for (const track of view.choices.values()) {
    for (const entry of track) {
      const { logprobs } = entry.choice;
      if (!isObject(logprobs)) continue;
      for (const list of [logprobs.content, logprobs.refusal])
        if (Array.isArray(list)) for (const token of list) yield { entry, token };
    }
  }
}

const isWritten = (view: StreamView) => [...view.choices.values()].some((track) => track.some(hasContent));
const hasTokens = (view: StreamView) => tokens(view).next().done === false;

function* wrongTokens(view: StreamView, kind: "shape" | "value" | "bytes" | "order"): Generator<Violation> {
  for (const { entry, token } of tokens(view)) {
    const found = tokenViolation(token, kind);
    if (found !== undefined) yield atChoicePart(entry, "logprobs", found);
  }
}

/** Rules about log probabilities in a chat stream. Source: specification, `ChatCompletionTokenLogprob`; recordings. */
export const logprobRules: Rules<StreamView> = on(chat, {
  *"logprobs/missing"(view) {
    if (requestMember(view.exchange, "logprobs") !== true || !isWritten(view)) return notShown;
    if (!hasTokens(view)) yield atEnd(view.exchange.response.body, "no log probabilities");
  },
  *"logprobs/uninvited"(view) {
    if (view.exchange.request.body === undefined || requestMember(view.exchange, "logprobs") === true) return notShown;
    const first = tokens(view).next().value as PlacedToken | undefined;
    if (first) yield atChoicePart(first.entry, "logprobs", "log probabilities that were not requested");
  },
  ...whenAll(hasTokens, {
    "logprobs/shape": (view) => wrongTokens(view, "shape"),
    "logprobs/value": (view) => wrongTokens(view, "value"),
    "logprobs/bytes": (view) => wrongTokens(view, "bytes"),
    "logprobs/order": (view) => wrongTokens(view, "order"),
    *"logprobs/text"(view) {
      for (const track of view.choices.values()) {
        const joined = track.flatMap(({ choice }) =>
          isObject(choice.logprobs) && Array.isArray(choice.logprobs.content) ? choice.logprobs.content : [],
        );
        const last = track.findLast(({ choice }) => isObject(choice.logprobs));
        if (!last || joined.length === 0) continue;
        if (textOfTokens(joined) !== deltaContent(track))
          yield atChoicePart(last, "logprobs", "the joined tokens are not the text");
      }
    },
  }),
  *"logprobs/count"(view) {
    if (!hasTokens(view) || requestMember(view.exchange, "logprobs") !== true) return notShown;
    const requested = Number(requestMember(view.exchange, "top_logprobs") ?? 0);
    for (const { entry, token } of tokens(view)) {
      const top = isObject(token) && Array.isArray(token.top_logprobs) ? token.top_logprobs.length : 0;
      // OpenAI adds the sampled token if it is not among the most likely.
      if (top !== requested && top !== requested + 1)
        yield atChoicePart(entry, "top_logprobs", `${top} instead of ${requested}`);
    }
  },
});
