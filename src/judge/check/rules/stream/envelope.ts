import { chatChunk } from "../../../../wire/apis/chat/schema.ts";
import { membersOf } from "../../../../wire/apis/members.ts";
import { requestedChoices } from "../expectations.ts";
import { atFrame, atMember, shown } from "../place.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { type Chunk, type StreamView } from "../view.ts";
import { chat, chatAndCompletions, hasError } from "./stream-rule.ts";
import { type Rules, type Violation, notShown, on } from "../rule.ts";

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

/** Rules about the members of a chunk next to its choices. Source: specification, `CreateChatCompletionStreamResponse`; recordings. */
export const envelopeRules: Rules<StreamView> = on(chatAndCompletions, {
  "stream/one-id": (view) => changed(view, "id"),
  *"stream/id-prefix"(view) {
    const [chunk] = answerChunks(view);
    const prefix = view.exchange.endpoint === "chat" ? "chatcmpl-" : "cmpl-";
    if (chunk && typeof chunk.value.id === "string" && !chunk.value.id.startsWith(prefix))
      yield atMember(chunk, "id", `id ${shown(chunk.value.id)}`);
  },
  "stream/one-created": (view) => changed(view, "created"),
  "stream/one-model": (view) => changed(view, "model"),
  *"stream/choices-empty"(view) {
    for (const chunk of answerChunks(view)) {
      const { choices, usage, moderation } = chunk.value;
      if (Array.isArray(choices) && choices.length === 0 && !isObject(usage) && !isObject(moderation))
        yield atMember(chunk, "choices", "empty choices");
    }
  },
  *"stream/one-choice"(view) {
    for (const chunk of view.chunks)
      if (chunk.choices.length > 1) yield atMember(chunk, "choices", `${chunk.choices.length} choices in one chunk`);
  },
  *"stream/known-members"(view) {
    for (const chunk of answerChunks(view)) {
      for (const name of Object.keys(chunk.value))
        if (!chunkMembers.has(name)) yield atMember(chunk, name, `the member ${name}`);
    }
  },
  *"stream/key-order"(view) {
    if (!chat.includes(view.exchange.endpoint)) return notShown;
    const order = [...chunkMembers];
    for (const chunk of answerChunks(view)) {
      // Role and call chunks of parallel calls put usage before choices (154 of 154).
      const keys = Object.keys(chunk.value).filter((key) => order.includes(key) && key !== "usage");
      const sorted = keys.toSorted((a, b) => order.indexOf(a) - order.indexOf(b));
      if (keys.join() !== sorted.join()) yield atFrame(chunk.frame, `the order ${keys.join(", ")}`);
    }
  },
  *"choice/index"(view) {
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
  *"choice/all"(view) {
    if (requestedChoices(view.exchange.request.body ?? {}) <= 1 || hasError(view)) return notShown;
    const count = requestedChoices(view.exchange.request.body ?? {});
    for (let index = 0; index < count; index++) {
      const last = view.chunks.at(-1);
      if (!view.choices.has(index) && last) yield atFrame(last.frame, `no chunk of choice ${index}`);
    }
  },
  *"choice/finish-key"(view) {
    for (const track of view.choices.values()) {
      for (const { chunk, choice, delta } of track) {
        // OpenAI's own last chunk of an audio answer has none.
        if (!("finish_reason" in choice) && !("audio" in delta))
          yield atFrame(chunk.frame, "a choice without finish_reason");
      }
    }
  },
});
