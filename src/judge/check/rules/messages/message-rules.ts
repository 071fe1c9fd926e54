import * as z from "zod";
import { isOpen, membersOf, unwrapped, variantsOf } from "../../../../wire/apis/members.ts";
import {
  contentBlock,
  messageDiagnostics,
  messageIdentity,
  messageUsage as usageSchema,
  stopReason,
} from "../../../../wire/apis/messages/schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { callIn, notOnlyJson, reasoningTagIn, specialTokenIn } from "../violations.ts";
import { shown } from "../place.ts";
import { type Structure, structuralRules } from "../spec/structure.ts";
import type { Json } from "../view.ts";
import {
  callsIn,
  messageExpectations,
  isUncut,
  type MessageBlock,
  messageText,
  type MessageView,
  promptTokens,
} from "./message-view.ts";
import { type Rules, notShown, whenAll } from "../rule.ts";

/* Rules about messages, streamed or not. Source: 316 recorded streams and 586 recorded bodies of 2024 to 2026; issues as named. */

/** The schemas of the reasons of a cache miss, by type. */
const missReasons = variantsOf(
  unwrapped(messageDiagnostics.shape.cache_miss_reason) as z.ZodDiscriminatedUnion,
) as ReadonlyMap<unknown, z.ZodObject>;

const hasCalls = (view: MessageView) => callsIn(view).length > 0;
const isNamed = (value: unknown) => typeof value === "string" && value !== "";

const structure: Structure = {
  schema: messageIdentity.extend({ content: z.array(z.looseObject({ type: z.string().min(1) })) }),
  members: {},
  rest: "messages/message",
};
const identityRules: Rules<MessageView> = structuralRules([structure], (view) => [
  { structure, value: view.message, at: ({ path, found, member }) => view.at(member, `${path} ${found}`) },
]);

/** Rules about the message and its blocks. */
const contentRules: Rules<MessageView> = {
  // A stream's events have rules of their own.
  *"messages/block-members"(view) {
    if (view.isStream || view.blocks.length === 0) return notShown;
    const { blocks } = view;
    for (const { value, at } of blocks) {
      const name = wrongMember(value);
      if (name !== undefined) yield at(name, `${String(value.type)} with ${name} ${shown(value[name])}`);
    }
  },
  *"messages/id-form"(view) {
    const { id } = view.message;
    if (typeof id === "string" && !id.startsWith("msg_")) yield view.at("id", `id ${shown(id)}`);
    for (const { value, at } of callsIn(view))
      if (typeof value.id === "string" && !value.id.startsWith("toolu_")) yield at("id", `id ${shown(value.id)}`);
  },
  *"messages/diagnostics"(view) {
    if (!isObject(view.message.diagnostics)) return notShown;
    const { message, at } = view;
    const { diagnostics } = message;
    const reason = isObject(diagnostics) ? diagnostics.cache_miss_reason : undefined;
    if (reason === null) return;
    if (!isObject(reason) || !isNamed(reason.type))
      return yield at("cache_miss_reason", `cache_miss_reason is ${shown(reason)}`);
    const isWrong = missReasons.get(reason.type)?.safeParse(reason).success === false;
    if (isWrong) yield at("cache_miss_reason", `cache_miss_reason is ${shown(reason)}`);
  },
  *"messages/diagnostics-known"(view) {
    if (!isObject(view.message.diagnostics) || !isObject(view.message.diagnostics.cache_miss_reason)) return notShown;
    const { message, at } = view;
    const { diagnostics } = message;
    const reason = isObject(diagnostics) ? diagnostics.cache_miss_reason : undefined;
    if (isObject(reason) && isNamed(reason.type) && !missReasons.has(reason.type))
      yield at("cache_miss_reason", `the reason ${shown(reason.type)}`);
  },
  ...whenAll(hasCalls, {
    *"messages/empty-text"({ blocks }) {
      for (const { value, at } of blocks)
        if (value.type === "text" && value.text === "") yield at("text", "an empty text");
    },
    *"messages/tool-id"(view) {
      const seen = new Set<unknown>();
      for (const { value, at } of callsIn(view)) {
        if (!isNamed(value.id)) yield at("id", `a call with id ${shown(value.id)}`);
        else if (seen.has(value.id)) yield at("id", `the id ${shown(value.id)} again`);
        seen.add(value.id);
      }
    },
    *"messages/tool-id-letters"(view) {
      for (const { value, at } of callsIn(view))
        if (typeof value.id === "string" && /[^a-zA-Z0-9_-]/.test(value.id)) yield at("id", `id ${shown(value.id)}`);
    },
    *"messages/tool-name"(view) {
      for (const { value, at } of callsIn(view))
        if (!isNamed(value.name)) yield at("name", `a call named ${shown(value.name)}`);
    },
  }),
  *"messages/known-tool"(view) {
    if (!hasCalls(view) || messageExpectations(view).tools === undefined) return notShown;
    const { tools } = messageExpectations(view);
    for (const { value, at } of callsIn(view))
      if (isNamed(value.name) && tools?.has(value.name) === false) yield at("name", `a call of ${shown(value.name)}`);
  },
  *"messages/reasoning-in-text"({ blocks }) {
    for (const { at, found } of texts(blocks, reasoningTagIn)) yield at("text", `text that begins ${shown(found)}`);
  },
  *"messages/call-in-text"(view) {
    if (view.exchange.request.body === undefined || messageExpectations(view).silent) return notShown;
    const { blocks, message } = view;
    // A call that the limit cut before its name was complete can only be shown as the text that it is.
    if (message.stop_reason === "max_tokens") return;
    for (const { at, found } of texts(blocks, callIn)) yield at("text", `${found} in text`);
  },
  *"messages/special-token"({ blocks }) {
    for (const { at, found } of texts(blocks, specialTokenIn)) yield at("text", `text that ends with ${found}`);
  },
};

const counts = membersOf(usageSchema).filter(({ schema }) => unwrapped(schema) instanceof z.ZodNumber);
const hasUsage = ({ message, isComplete }: MessageView) => isComplete && isObject(message.usage);

/** Rules about the end of a message, and its usage. */
const endingRules: Rules<MessageView> = {
  ...whenAll(({ isComplete }) => isComplete, {
    *"messages/stop-reason"({ message, at }) {
      if (!stopReason.safeParse(message.stop_reason).success)
        yield at("stop_reason", `stop_reason ${shown(message.stop_reason)}`);
    },
    *"messages/stop-sequence"({ message, exchange, at }) {
      const { stop_reason: reason, stop_sequence: stop = null } = message;
      const requested = exchange.request.body?.stop_sequences;
      if (reason !== "stop_sequence") {
        if (stop !== null) yield at("stop_sequence", `${shown(stop)} with ${shown(reason)}`);
      } else if (typeof stop !== "string") yield at("stop_sequence", `stop_sequence ${shown(stop)}`);
      else if (exchange.request.body && !(Array.isArray(requested) && requested.includes(stop)))
        yield at("stop_sequence", `${shown(stop)}, which was not requested`);
    },
    *"messages/usage"({ message, at }) {
      const { usage } = message;
      if (!isObject(usage)) {
        yield at("usage", `usage is ${shown(usage)}`);
        return;
      }
      for (const { name, schema, since } of counts) {
        const count = usage[name];
        const isAbsent = since !== undefined && count === undefined;
        if (!isAbsent && !schema.safeParse(count).success) yield at(name, `${name} is ${shown(count)}`);
      }
    },
  }),
  *"messages/tool-stop"(view) {
    if (!view.isComplete || callsIn(view).length === 0) return notShown;
    const { message, at } = view;
    const { stop_reason: reason } = message;
    if (reason === "end_turn" || reason === "stop_sequence") yield at("stop_reason", `${reason} next to a call`);
  },
  *"messages/tool-stop-made"(view) {
    if (view.message.stop_reason !== "tool_use") return notShown;
    if (callsIn(view).length === 0) yield view.at("stop_reason", "tool_use without a call");
  },
  *"messages/usage-counted"(view) {
    if (!hasUsage(view)) return notShown;
    const { message, blocks, at } = view;
    if (!isObject(message.usage)) return;
    if (promptTokens(message.usage) === 0) yield at("input_tokens", "a prompt of 0 tokens");
    if (blocks.length > 0 && message.usage.output_tokens === 0) yield at("output_tokens", "an answer of 0 tokens");
  },
  *"messages/usage-thinking"(view) {
    if (!isObject(view.message.usage) || !isObject(view.message.usage.output_tokens_details)) return notShown;
    const { message, at } = view;
    const usage = isObject(message.usage) ? message.usage : {};
    const details = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {};
    const { thinking_tokens: thinking } = details;
    if (typeof thinking === "number" && typeof usage.output_tokens === "number" && thinking > usage.output_tokens)
      yield at("thinking_tokens", `${thinking} of ${usage.output_tokens}`);
  },
};

/** Rules about a message and its request. */
const requestRules: Rules<MessageView> = {
  *"messages/stop-text"(view) {
    if (messageExpectations(view).stops.length === 0) return notShown;
    const stop = messageExpectations(view).stops.find((one) => messageText(view).includes(one));
    if (stop !== undefined) yield view.at("stop_reason", `the stop sequence ${shown(stop)} in the text`);
  },
  *"messages/max-tokens"(view) {
    if (!view.isComplete || messageExpectations(view).limit === undefined || !isObject(view.message.usage))
      return notShown;
    const { usage } = view.message;
    const used = isObject(usage) ? usage.output_tokens : 0;
    const { limit = Infinity } = messageExpectations(view);
    if (typeof used === "number" && used > limit) yield view.at("output_tokens", `${used} tokens, ${limit} allowed`);
  },
  *"messages/required"(view) {
    if (!isUncut(view) || !messageExpectations(view).forced) return notShown;
    if (callsIn(view).length === 0) yield view.at("stop_reason", "no call");
  },
  *"messages/named"(view) {
    if (messageExpectations(view).named === undefined) return notShown;
    for (const { value, at } of callsIn(view))
      if (value.name !== messageExpectations(view).named) yield at("name", `a call of ${shown(value.name)}`);
  },
  *"messages/no-tools"(view) {
    if (!messageExpectations(view).silent) return notShown;
    for (const { value, at } of callsIn(view)) yield at("name", `a call of ${shown(value.name)}`);
  },
  *"messages/parallel"(view) {
    if (!messageExpectations(view).single) return notShown;
    const [, second] = callsIn(view);
    if (second) yield second.at("name", `${callsIn(view).length} calls`);
  },
  *"messages/json"(view) {
    if (!isUncut(view) || !messageExpectations(view).json || callsIn(view).length !== 0) return notShown;
    for (const found of notOnlyJson(messageText(view))) yield view.at("stop_reason", found);
  },
  *"messages/no-thinking"(view) {
    if (!messageExpectations(view).withoutThinking) return notShown;
    const { blocks } = view;
    for (const { value, at } of blocks) if (value.type === "thinking") yield at("thinking", "a thinking block");
  },
};

/** Every rule about a message of the Messages API, streamed or not. */
export const messageRules: Rules<MessageView> = {
  ...identityRules,
  ...contentRules,
  ...endingRules,
  ...requestRules,
};

/** Returns the first member of a block that its schema refuses. A call's id and name have rules of their own. */
function wrongMember(block: Json): string | undefined {
  const schema = variantsOf(contentBlock).get(block.type);
  if (schema === undefined || isOpen(schema)) return undefined;
  const members = membersOf(schema).filter(
    ({ name, always, since }) => always && since === undefined && !ofCalls.has(name),
  );
  return members.find(({ name, schema }) => !schema.safeParse(block[name]).success)?.name;
}

const ofCalls: ReadonlySet<string> = new Set(["id", "name"]);

/** Returns the text blocks in which `find` finds something. */
function texts(blocks: readonly MessageBlock[], find: (text: string) => string | undefined) {
  return blocks.flatMap(({ value, at }) => {
    const found = value.type === "text" && typeof value.text === "string" ? find(value.text) : undefined;
    return found === undefined ? [] : [{ at, found }];
  });
}
