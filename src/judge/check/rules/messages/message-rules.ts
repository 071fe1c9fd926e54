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
import { shown } from "../place.ts";
import { type Answer, requestRules } from "../request-rules.ts";
import { type Structure, structuralRules } from "../spec/structure.ts";
import type { Json } from "../view.ts";
import {
  callsIn,
  messageExpectations,
  isUncut,
  messageText,
  type MessageView,
  promptTokens,
  textIn,
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
function answerOf(view: MessageView): Answer {
  const { usage, stop_reason: reason } = view.message;
  const tokens = view.isComplete && isObject(usage) ? usage.output_tokens : undefined;
  return {
    exchange: view.exchange,
    expectations: messageExpectations(view),
    choices: [
      {
        texts: view.blocks.flatMap(({ value, at }) => {
          const place = (found: string) => at("text", found);
          return value.type === "text" ? [{ text: textIn(value, "text"), at: place, atEnd: place }] : [];
        }),
        json: [messageText(view)],
        calls: callsIn(view).map(({ value, at }) => ({ name: value.name, at: (found) => at("name", found) })),
        isWhole: isUncut(view),
        isCut: reason === "max_tokens",
        atEnd: (found) => view.at("stop_reason", found),
      },
    ],
    tokens: typeof tokens === "number" ? tokens : undefined,
    atTokens: (found) => view.at("output_tokens", found),
  };
}

const messageRequestRules: Rules<MessageView> = {
  ...requestRules(answerOf, {
    stop: "messages/stop-text",
    limit: "messages/max-tokens",
    required: "messages/required",
    named: "messages/named",
    noTools: "messages/no-tools",
    parallel: "messages/parallel",
    knownTool: "messages/known-tool",
    json: "messages/json",
    reasoningInText: "messages/reasoning-in-text",
    callInText: "messages/call-in-text",
    specialToken: "messages/special-token",
  }),

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
  ...messageRequestRules,
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
