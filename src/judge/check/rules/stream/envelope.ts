import { chatChunk } from "../../../../wire/apis/chat/schema.ts";
import { membersOf } from "../../../../wire/apis/members.ts";
import { requestedChoices } from "../expectations.ts";
import { atFrame, atMember, shown } from "../place.ts";
import type { Violation, StreamRule } from "../rule.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { type Chunk, type StreamView } from "../view.ts";
import { chat, chatAndCompletions, hasError, streamRulesOf } from "./stream-rule.ts";

/** The members of a chunk in OpenAI's order, without extensions of other servers. */
const chunkMembers: ReadonlySet<string> = new Set([
  ...membersOf(chatChunk).flatMap(({ name, schema }) =>
    name === "usage" || schema.meta()?.["extension"] !== undefined ? [] : [name],
  ),
  "moderation",
  "usage",
  "obfuscation",
]);

/** Returns the chunks that are not errors. */
function answerChunks(view: StreamView): readonly Chunk[] {
  return view.chunks.filter((chunk) => !("error" in chunk.value));
}

function* changed(view: StreamView, member: string): Generator<Violation> {
  const chunks = answerChunks(view);
  const first = chunks[0]?.value[member];
  for (const chunk of chunks.slice(1)) {
    const value = chunk.value[member];
    if (value !== undefined && first !== undefined && value !== first)
      yield atMember(chunk, member, `${shown(value)} after ${shown(first)}`);
  }
}

function* wrongType(view: StreamView, member: string, right: (value: unknown) => boolean): Generator<Violation> {
  for (const chunk of answerChunks(view)) {
    if (!right(chunk.value[member])) yield atMember(chunk, member, `${member} is ${shown(chunk.value[member])}`);
  }
}

/** Rules about the members of a chunk next to its choices. Source: specification, `CreateChatCompletionStreamResponse`; recordings. */
export const envelopeRules: readonly StreamRule[] = streamRulesOf(chatAndCompletions, [
  {
    id: "stream/id",
    severity: "error",
    concern: "the stream cannot be read",
    says: "Every chunk has an id, a string that is not empty.",
    source: "specification: CreateChatCompletionStreamResponse.id",
    breaks: ["AI SDK (schema)", "clients that key messages by id"],
    judge: (view) => wrongType(view, "id", (value) => typeof value === "string" && value !== ""),
  },
  {
    id: "stream/one-id",
    severity: "warning",
    concern: "choices mix",
    says: "All chunks of a stream have the same id.",
    source: "recordings 409 of 409; LiteLLM #40040",
    breaks: ["opencode", "clients that key messages by id"],
    judge: (view) => changed(view, "id"),
  },
  {
    id: "stream/id-prefix",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "The id begins with chatcmpl- (completions: cmpl-).",
    source: "recordings 19,551 of 19,600",
    *judge(view) {
      const [chunk] = answerChunks(view);
      const prefix = view.exchange.endpoint === "chat" ? "chatcmpl-" : "cmpl-";
      if (chunk && typeof chunk.value.id === "string" && !chunk.value.id.startsWith(prefix))
        yield atMember(chunk, "id", `id ${shown(chunk.value.id)}`);
    },
  },
  {
    id: "stream/object",
    severity: "error",
    concern: "the stream cannot be read",
    says: "object is chat.completion.chunk (completions: text_completion).",
    source: "specification (a constant)",
    breaks: ["official SDK helpers", "LangChain"],
    judge: (view) =>
      wrongType(
        view,
        "object",
        (value) => value === (view.exchange.endpoint === "chat" ? "chat.completion.chunk" : "text_completion"),
      ),
  },
  {
    id: "stream/created",
    severity: "error",
    concern: "the stream cannot be read",
    says: "created is an integer: Unix time in seconds.",
    source: "specification: created; SambaNova sends fractions",
    breaks: ["typed clients (Go, Rust, Java, C#)"],
    judge: (view) =>
      wrongType(
        view,
        "created",
        (value) => Number.isInteger(value) && (value as number) > 0 && (value as number) < 1e11,
      ),
  },
  {
    id: "stream/one-created",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "created is the same in all chunks.",
    source: "recordings 409 of 409; specification: 'Each chunk has the same timestamp'; tabbyAPI",
    judge: (view) => changed(view, "created"),
  },
  {
    id: "stream/model",
    severity: "error",
    concern: "the stream cannot be read",
    says: "Every chunk names its model.",
    source: "specification: model is required",
    breaks: ["typed clients (Go, Rust, Java, C#)"],
    judge: (view) => wrongType(view, "model", (value) => typeof value === "string" && value !== ""),
  },
  {
    id: "stream/one-model",
    severity: "warning",
    concern: "choices mix",
    says: "All chunks name the same model.",
    source: "recordings 409 of 409",
    breaks: ["cost accounting in gateways"],
    judge: (view) => changed(view, "model"),
  },
  {
    id: "stream/fingerprint",
    severity: "error",
    concern: "the stream cannot be read",
    says: "system_fingerprint, where present, is a string or null.",
    source: "specification",
    breaks: ["typed clients (Go, Rust, Java, C#)"],
    judge: (view) =>
      wrongType(
        view,
        "system_fingerprint",
        (value) => value === undefined || value === null || typeof value === "string",
      ),
  },
  {
    id: "stream/service-tier",
    severity: "error",
    concern: "the stream cannot be read",
    says: "service_tier, where present, is one of the specification's values or null.",
    source: "specification: ServiceTier",
    breaks: ["typed clients (Go, Rust, Java, C#)"],
    judge: (view) => wrongType(view, "service_tier", (value) => chatChunk.shape.service_tier.safeParse(value).success),
  },
  {
    id: "stream/choices",
    severity: "error",
    concern: "the stream cannot be read",
    says: "choices is an array of objects.",
    source: "specification: choices is required",
    breaks: ["official SDKs", "the naive loop over chunk.choices[0]"],
    *judge(view) {
      for (const chunk of answerChunks(view)) {
        const { choices } = chunk.value;
        if (!Array.isArray(choices) || !choices.every(isObject))
          yield atMember(chunk, "choices", `choices is ${shown(choices)}`);
      }
    },
  },
  {
    id: "stream/choices-empty",
    severity: "warning",
    concern: "the stream cannot be read",
    says: "choices is empty only in the usage chunk.",
    source: "recordings 6528 of 6528; Azure's first chunk",
    breaks: ["the naive loop over chunk.choices[0].delta"],
    *judge(view) {
      for (const chunk of answerChunks(view)) {
        const { choices, usage, moderation } = chunk.value;
        if (Array.isArray(choices) && choices.length === 0 && !isObject(usage) && !isObject(moderation))
          yield atMember(chunk, "choices", "empty choices");
      }
    },
  },
  {
    id: "stream/one-choice",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "A chunk has one choice at most.",
    source: "recordings 6528 of 6528",
    *judge(view) {
      for (const chunk of view.chunks)
        if (chunk.choices.length > 1) yield atMember(chunk, "choices", `${chunk.choices.length} choices in one chunk`);
    },
  },
  {
    id: "stream/known-members",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "A chunk has no members beyond OpenAI's.",
    source: "specification; recordings",
    *judge(view) {
      for (const chunk of answerChunks(view)) {
        for (const name of Object.keys(chunk.value))
          if (!chunkMembers.has(name)) yield atMember(chunk, name, `the member ${name}`);
      }
    },
  },
  {
    id: "stream/key-order",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "The members of every chunk are in OpenAI's order.",
    source: "recordings since 2025-08, both orders of parallel calls included",
    endpoints: chat,
    *judge(view) {
      const order = [...chunkMembers];
      for (const chunk of answerChunks(view)) {
        // Role and call chunks of parallel calls put usage before choices (154 of 154).
        const keys = Object.keys(chunk.value).filter((key) => order.includes(key) && key !== "usage");
        const sorted = keys.toSorted((a, b) => order.indexOf(a) - order.indexOf(b));
        if (keys.join() !== sorted.join()) yield atFrame(chunk.frame, `the order ${keys.join(", ")}`);
      }
    },
  },
  {
    id: "choice/index",
    severity: "error",
    concern: "choices mix",
    says: "Every choice has an index, an integer from 0 to n − 1.",
    source: "specification: index is required",
    breaks: ["official SDK helpers", "LangChain"],
    *judge(view) {
      const { body } = view.exchange.request;
      const bound = body ? requestedChoices(body) : Infinity;
      for (const chunk of view.chunks) {
        for (const choice of chunk.choices) {
          const { index } = choice;
          if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= bound)
            yield atMember(chunk, "index", `index ${shown(index)}`);
        }
      }
    },
  },
  {
    id: "choice/all",
    severity: "error",
    concern: "text is lost or wrong",
    says: "Every requested choice is sent: n for each prompt.",
    source: "specification: n",
    breaks: ["every caller that asked for n > 1"],
    shown: (view) => requestedChoices(view.exchange.request.body ?? {}) > 1 && !hasError(view),
    *judge(view) {
      const count = requestedChoices(view.exchange.request.body ?? {});
      for (let index = 0; index < count; index++) {
        const last = view.chunks.at(-1);
        if (!view.choices.has(index) && last) yield atFrame(last.frame, `no chunk of choice ${index}`);
      }
    },
  },
  {
    id: "choice/finish-key",
    severity: "warning",
    concern: "the stream cannot be read",
    says: "Every choice has finish_reason, null until it ends.",
    source: "specification: finish_reason is required and nullable",
    breaks: ["typed clients (Go, Rust, Java, C#)", "AI SDK before its schema was loosened"],
    *judge(view) {
      for (const track of view.choices.values()) {
        for (const { chunk, choice, delta } of track) {
          // OpenAI's own last chunk of an audio answer has none.
          if (!("finish_reason" in choice) && !("audio" in delta))
            yield atFrame(chunk.frame, "a choice without finish_reason");
        }
      }
    },
  },
]);
