import { requestMember } from "../exchange.ts";
import { textOfTokens, tokenViolation } from "../violations.ts";
import { atChoicePart, atEnd } from "../place.ts";
import type { StreamRule, Violation } from "../rule.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { ChoicePart, StreamView } from "../view.ts";
import { chat, deltaContent, hasContent, streamRulesOf } from "./stream-rule.ts";

const wrongLogprobs = "log probabilities are wrong";

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
export const logprobRules: readonly StreamRule[] = streamRulesOf(chat, [
  {
    id: "logprobs/missing",
    severity: "error",
    concern: wrongLogprobs,
    says: "Requested log probabilities are sent with the text.",
    source: "specification: logprobs",
    breaks: ["evaluation harnesses"],
    shown: (view) => requestMember(view.exchange, "logprobs") === true && isWritten(view),
    *judge(view) {
      if (!hasTokens(view)) yield atEnd(view.exchange.response.body, "no log probabilities");
    },
  },
  {
    id: "logprobs/uninvited",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "Log probabilities are sent only when requested.",
    source: "specification: logprobs defaults to false",
    shown: (view) => view.exchange.request.body !== undefined && requestMember(view.exchange, "logprobs") !== true,
    *judge(view) {
      const first = tokens(view).next().value as PlacedToken | undefined;
      if (first) yield atChoicePart(first.entry, "logprobs", "log probabilities that were not requested");
    },
  },
  {
    id: "logprobs/shape",
    severity: "error",
    concern: wrongLogprobs,
    says: "A token has token, logprob, bytes and top_logprobs.",
    source: "specification: ChatCompletionTokenLogprob",
    breaks: ["typed clients (Go, Rust, Java, C#)", "official SDK helpers"],
    shown: hasTokens,
    judge: (view) => wrongTokens(view, "shape"),
  },
  {
    id: "logprobs/value",
    severity: "error",
    concern: wrongLogprobs,
    says: "A logprob is a number, 0 or less.",
    source: "specification: logprob (the logarithm of a probability is at most 0)",
    breaks: ["evaluation harnesses"],
    shown: hasTokens,
    judge: (view) => wrongTokens(view, "value"),
  },
  {
    id: "logprobs/bytes",
    severity: "warning",
    concern: wrongLogprobs,
    says: "A token's bytes are the UTF-8 of its text.",
    source: "specification: bytes; recordings",
    breaks: ["clients that join bytes to text"],
    shown: hasTokens,
    judge: (view) => wrongTokens(view, "bytes"),
  },
  {
    id: "logprobs/order",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "top_logprobs are sorted, the most likely first.",
    source: "recordings",
    shown: hasTokens,
    judge: (view) => wrongTokens(view, "order"),
  },
  {
    id: "logprobs/count",
    severity: "error",
    concern: wrongLogprobs,
    says: "A token has as many top_logprobs as requested.",
    source: "specification: top_logprobs",
    breaks: ["evaluation harnesses"],
    shown: (view) => hasTokens(view) && requestMember(view.exchange, "logprobs") === true,
    *judge(view) {
      const requested = Number(requestMember(view.exchange, "top_logprobs") ?? 0);
      for (const { entry, token } of tokens(view)) {
        const top = isObject(token) && Array.isArray(token.top_logprobs) ? token.top_logprobs.length : 0;
        // OpenAI adds the sampled token if it is not among the most likely.
        if (top !== requested && top !== requested + 1)
          yield atChoicePart(entry, "top_logprobs", `${top} instead of ${requested}`);
      }
    },
  },
  {
    id: "logprobs/text",
    severity: "error",
    concern: wrongLogprobs,
    says: "The tokens of a choice, joined, are its text, without the tokens of its reasoning.",
    source: "specification: logprobs.content ('A list of message content tokens'); recordings",
    breaks: ["clients that color text by confidence", "evaluation harnesses"],
    shown: hasTokens,
    *judge(view) {
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
  },
]);
