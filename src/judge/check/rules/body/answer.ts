import { chatCompletion, chatFinishReason, chatMessage } from "../../../../wire/apis/chat/schema.ts";
import { completion } from "../../../../wire/apis/completions/schema.ts";
import { memberNames } from "../../../../wire/apis/members.ts";
import { requestedChoices } from "../expectations.ts";
import { atName, bodyChoices, isAnswer, isChat, messageOf, notJson, objectOf, shown } from "../place.ts";
import { isTokenLists, textOfTokens, tokenListsViolation, tokenViolation, usageViolation } from "../violations.ts";
import type { BodyRule, Violation } from "../rule.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { BodyView, Json } from "../view.ts";

function* member(view: BodyView, name: string, isRight: (value: unknown) => boolean): Generator<Violation> {
  const value = objectOf(view)[name];
  if (!isRight(value)) yield atName(view, name, `${name} is ${shown(value)}`);
}

function* counted(view: BodyView, kind: "type" | "sum" | "details"): Generator<Violation> {
  const { usage } = objectOf(view);
  const found = isObject(usage) ? usageViolation(usage, kind) : undefined;
  if (found !== undefined) yield atName(view, "usage", found);
}

const hasUsage = (view: BodyView) => isAnswer(view) && isObject(objectOf(view).usage);
const finishReasons: ReadonlySet<unknown> = new Set(chatFinishReason.options);

const answerRule = { severity: "error", concern: "text is lost or wrong", judges: "body", shown: isAnswer } as const;

const messageRule = { severity: "error", concern: "text is lost or wrong", judges: "body", shown: isChat } as const;

const usageRule = { severity: "error", concern: "token counts are wrong", judges: "body", shown: hasUsage } as const;

const logprobsRule = { severity: "error", concern: "log probabilities are wrong", judges: "body" } as const;

/** Rules about an answer that is not streamed. Source: specification, `CreateChatCompletionResponse` and `CreateCompletionResponse`. */
export const answerRules: readonly BodyRule[] = [
  {
    id: "body/json",
    severity: "error",
    concern: "text is lost or wrong",
    says: "The body is one JSON object, without NaN and Infinity.",
    source: "specification; RFC 8259 section 6 (NaN and Infinity are not JSON); SGLang #5984, mlx-omni-server #56",
    breaks: ["every client (JSON.parse throws)"],
    judges: "body",
    // The specification gives a deletion no body.
    shown: ({ exchange }) =>
      exchange.response.status === 200 && !["other", "response-deletion", "conversation"].includes(exchange.endpoint),
    *judge(view) {
      if (!isObject(view.value)) yield notJson(view.exchange.response.body);
    },
  },
  {
    ...answerRule,
    id: "body/id",
    says: "The answer has an id, a string that is not empty.",
    source: "specification",
    breaks: ["typed clients (Go, Rust, Java, C#)"],
    judge: (view) => member(view, "id", (value) => typeof value === "string" && value !== ""),
  },
  {
    id: "body/id-prefix",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "The id begins with chatcmpl- (completions: cmpl-).",
    source: "recordings 19,551 of 19,600",
    breaks: [],
    judges: "body",
    shown: isAnswer,
    judge: (view) =>
      member(
        view,
        "id",
        (value) =>
          typeof value !== "string" || value.startsWith(view.exchange.endpoint === "chat" ? "chatcmpl-" : "cmpl-"),
      ),
  },
  {
    ...answerRule,
    id: "body/object",
    says: "object is chat.completion (completions: text_completion).",
    source: "specification (a constant)",
    breaks: ["LangChain", "typed clients (Go, Rust, Java, C#)"],
    judge: (view) =>
      member(
        view,
        "object",
        (value) => value === (view.exchange.endpoint === "chat" ? "chat.completion" : "text_completion"),
      ),
  },
  {
    ...answerRule,
    id: "body/created",
    says: "created is an integer: Unix time in seconds.",
    source: "specification",
    breaks: ["typed clients (Go, Rust, Java, C#)"],
    judge: (view) =>
      member(view, "created", (value) => Number.isInteger(value) && (value as number) > 0 && (value as number) < 1e11),
  },
  {
    ...answerRule,
    id: "body/model",
    says: "The answer names its model.",
    source: "specification",
    breaks: ["typed clients (Go, Rust, Java, C#)"],
    judge: (view) => member(view, "model", (value) => typeof value === "string" && value !== ""),
  },
  {
    ...answerRule,
    id: "body/choices",
    says: "choices is an array of objects that is not empty.",
    source: "specification",
    breaks: ["everyone who reads choices[0]"],
    judge: (view) =>
      member(view, "choices", (value) => Array.isArray(value) && value.length > 0 && value.every(isObject)),
  },
  {
    id: "body/index",
    severity: "error",
    concern: "choices mix",
    says: "Choices are numbered 0, 1, 2, … in their order.",
    source: "specification; recordings",
    breaks: ["clients that sort or key by index"],
    judges: "body",
    shown: isAnswer,
    *judge(view) {
      for (const [position, choice] of bodyChoices(view).entries())
        if (choice.index !== position) yield atName(view, "index", `index ${shown(choice.index)} at place ${position}`);
    },
  },
  {
    id: "body/n",
    severity: "error",
    concern: "text is lost or wrong",
    says: "There are as many choices as requested: n for each prompt.",
    source: "specification: n",
    breaks: ["every caller that asked for n > 1"],
    judges: "body",
    shown: (view) => isAnswer(view) && view.exchange.request.body !== undefined,
    *judge(view) {
      const count = requestedChoices(view.exchange.request.body ?? {});
      if (bodyChoices(view).length !== count)
        yield atName(view, "choices", `${bodyChoices(view).length} choices instead of ${count}`);
    },
  },
  {
    ...messageRule,
    id: "body/message",
    says: "Every choice has a message with role assistant.",
    source: "specification: ChatCompletionResponseMessage",
    breaks: ["official SDK helpers", "everyone who reads choices[0].message"],
    *judge(view) {
      for (const choice of bodyChoices(view))
        if (messageOf(choice).role !== "assistant")
          yield atName(view, "message", `a message with role ${shown(messageOf(choice).role)}`);
    },
  },
  {
    ...messageRule,
    id: "body/content",
    says: "content is always present: a string, or null next to tool calls or a refusal.",
    source: "specification: content is required and nullable",
    breaks: ["typed clients (Go, Rust, Java, C#)", "AI SDK (schema)"],
    *judge(view) {
      for (const choice of bodyChoices(view)) {
        const message = messageOf(choice);
        if (typeof message.content !== "string" && message.content !== null)
          yield atName(view, "content", `content is ${shown(message.content)}`);
      }
    },
  },
  {
    id: "body/text",
    severity: "error",
    concern: "text is lost or wrong",
    says: "Every choice of a completion has text, a string.",
    source: "specification: text is required",
    breaks: ["everyone who reads choices[0].text"],
    judges: "body",
    shown: (view) => isAnswer(view) && !isChat(view),
    *judge(view) {
      for (const choice of bodyChoices(view))
        if (typeof choice.text !== "string") yield atName(view, "text", `text is ${shown(choice.text)}`);
    },
  },
  {
    id: "body/finish",
    severity: "error",
    concern: "the answer seems to end wrongly",
    says: "Every choice has a finish_reason: stop, length, tool_calls, content_filter or function_call.",
    source: "specification",
    breaks: ["AI SDK (schema)", "typed clients (Go, Rust, Java, C#)"],
    judges: "body",
    shown: isAnswer,
    *judge(view) {
      for (const choice of bodyChoices(view))
        if (!finishReasons.has(choice.finish_reason))
          yield atName(view, "finish_reason", `finish_reason ${shown(choice.finish_reason)}`);
    },
  },
  {
    id: "body/usage",
    severity: "warning",
    concern: "token counts are wrong",
    says: "An answer that is not streamed has usage.",
    source: "recordings 1,600 of 1,600",
    breaks: ["cost accounting", "clients that read usage.total_tokens"],
    judges: "body",
    shown: isAnswer,
    judge: (view) => member(view, "usage", isObject),
  },
  {
    ...usageRule,
    id: "body/usage-type",
    says: "prompt_tokens, completion_tokens and total_tokens are present, and all token counts are integers, 0 or more.",
    source: "specification",
    breaks: ["typed clients (Go, Rust, Java, C#)", "cost accounting"],
    judge: (view) => counted(view, "type"),
  },
  {
    ...usageRule,
    id: "body/usage-sum",
    says: "total_tokens is the sum of prompt_tokens and completion_tokens.",
    source: "specification; recordings",
    breaks: ["cost accounting"],
    judge: (view) => counted(view, "sum"),
  },
  {
    id: "body/usage-details",
    severity: "warning",
    concern: "token counts are wrong",
    says: "cached_tokens is at most prompt_tokens, and reasoning_tokens at most completion_tokens.",
    source: "specification",
    breaks: ["cost accounting"],
    judges: "body",
    shown: hasUsage,
    judge: (view) => counted(view, "details"),
  },
  {
    ...logprobsRule,
    id: "body/logprobs",
    says: "Requested log probabilities are sent, each with token, logprob, bytes and top_logprobs.",
    source: "specification: ChatCompletionTokenLogprob",
    breaks: ["evaluation harnesses", "typed clients (Go, Rust, Java, C#)"],
    shown: (view) => isChat(view) && view.exchange.request.body?.logprobs === true,
    *judge(view) {
      for (const choice of bodyChoices(view)) {
        const list = isObject(choice.logprobs) ? (choice.logprobs.content ?? choice.logprobs.refusal) : undefined;
        if (!Array.isArray(list)) {
          if (typeof messageOf(choice).content === "string" && messageOf(choice).content !== "")
            yield atName(view, "logprobs", `logprobs is ${shown(choice.logprobs)}`);
          continue;
        }
        for (const token of list) {
          const found = tokenViolation(token, "shape") ?? tokenViolation(token, "value");
          if (found !== undefined) yield atName(view, "logprobs", found);
        }
      }
    },
  },
  {
    ...logprobsRule,
    id: "body/logprobs-text",
    says: "The tokens of a choice, joined, are its text, without the tokens of its reasoning.",
    source: "specification: logprobs.content ('A list of message content tokens'); recordings",
    breaks: ["clients that color text by confidence", "evaluation harnesses"],
    shown: (view) => isChat(view) && bodyChoices(view).some((choice) => contentTokens(choice) !== undefined),
    *judge(view) {
      for (const choice of bodyChoices(view)) {
        const list = contentTokens(choice);
        const text = messageOf(choice).content ?? "";
        if (list && textOfTokens(list) !== text) yield atName(view, "logprobs", "the joined tokens are not the text");
      }
    },
  },
  {
    ...logprobsRule,
    id: "body/token-lists",
    says: "Log probabilities of a completion are lists of one length; a token without one, as the first of an echoed prompt, has null in token_logprobs and in top_logprobs.",
    source: "specification: CreateCompletionResponse; llama.cpp #27174, and OpenAI's own answer in vLLM #1504",
    breaks: ["evaluation harnesses (lm-evaluation-harness reads these lists by position)"],
    shown: (view) => isAnswer(view) && bodyChoices(view).some(({ logprobs }) => isTokenLists(logprobs)),
    *judge(view) {
      for (const { logprobs } of bodyChoices(view)) {
        const found = isTokenLists(logprobs) ? tokenListsViolation(logprobs) : undefined;
        if (found) yield atName(view, found.member, found.found);
      }
    },
  },
  {
    id: "body/known-members",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "An answer and its messages have no members beyond OpenAI's and the reasoning fields.",
    source: "specification; recordings 300 of 300",
    breaks: [],
    judges: "body",
    shown: isAnswer,
    *judge(view) {
      for (const name of Object.keys(objectOf(view)))
        if (!knownMembers.has(name)) yield atName(view, name, `the member ${name}`);
      for (const choice of bodyChoices(view)) {
        for (const name of Object.keys(messageOf(choice)))
          if (!knownInMessages.has(name)) yield atName(view, name, `the member ${name}`);
      }
    },
  },
];

const knownMembers: ReadonlySet<string> = new Set([...memberNames(chatCompletion), ...memberNames(completion)]);
const knownInMessages: ReadonlySet<string> = new Set(memberNames(chatMessage));

/** Returns the tokens of a choice's text, or `undefined` if it has no list of them. */
function contentTokens(choice: Json): readonly Json[] | undefined {
  const list = isObject(choice.logprobs) ? choice.logprobs.content : undefined;
  return Array.isArray(list) ? list.filter(isObject) : undefined;
}
