import { invalidRequest } from "../../wire/core/failure.ts";
import type { Message, AssistantMessage, AssistantPart } from "../../wire/core/message.ts";
import { runSync } from "../../wire/core/steps.ts";
import { chatParameters } from "../../wire/apis/chat/request.ts";
import { writeChatMessages } from "../../wire/apis/chat/write-messages.ts";
import { exact, lean } from "../../wire/apis/profile.ts";
import { emptyDraft } from "../../wire/apis/request/draft.ts";
import { chatRules } from "../../wire/apis/chat/request-rules.ts";
import type { ChatRequestMessage } from "../../wire/apis/chat/request-types.ts";
import { readParameters } from "../../wire/apis/request/parameter.ts";
import { applyRules } from "../../wire/apis/request/vendor-rules.ts";
import type { GeneratedChoice } from "../../wire/core/accumulate.ts";
import { assistantContent } from "../../wire/core/message.ts";
import type { FinishReason } from "../../wire/core/events.ts";
import { readFinishReason } from "../../wire/apis/tolerant/finish-reasons.ts";

const messagesMember = chatParameters.filter(({ name }) => name === "messages");
const roles = new Set<unknown>(["system", "developer", "user", "assistant", "tool", "function"]);

/**
 * Messages as a chat request has them. Reasoning is `reasoning_content`. `legacy`: calls as `function_call`, their results with role
 * "function".
 *
 * @example
 * import { toOpenAiMessages } from "truewire";
 *
 * const call = { type: "tool-call", id: "call_1", name: "now", arguments: "{}" };
 * const messages = toOpenAiMessages([{ role: "assistant", content: [call] }]);
 * console.log(JSON.stringify(messages[0].tool_calls));
 * // → [{"id":"call_1","type":"function","function":{"name":"now","arguments":"{}"}}]
 */
export function toOpenAiMessages(
  messages: readonly Message[],
  options: { readonly legacy?: boolean } = {},
): ChatRequestMessage[] {
  return writeChatMessages(messages, options) as ChatRequestMessage[];
}

/**
 * The conversation of a chat request's `messages`. Results find the name of what was called; legacy `function` messages become tool
 * messages. A call's arguments stay the text that they are, parseable or not. `strict`: a result without its call is refused, as
 * OpenAI does. Throws `FailureError` (400): "Unsupported message role: …", or what is wrong elsewhere, in OpenAI's words and with its
 * path.
 *
 * @example
 * import { fromOpenAiMessages } from "truewire";
 *
 * const [message] = fromOpenAiMessages([{ role: "user", content: [{ type: "image_url", image_url: { url: "https://example.com/a.png" } }] }]);
 * console.log(message.content);
 * // → [ { type: 'image', url: 'https://example.com/a.png' } ]
 */
export function fromOpenAiMessages(
  messages: readonly unknown[],
  options: { readonly strict?: boolean } = {},
): readonly Message[] {
  if (messages.length === 0) return [];
  for (const [index, message] of messages.entries()) {
    const { role } = (message ?? {}) as { readonly role?: unknown };
    if (typeof role !== "string" || roles.has(role)) continue;
    throw invalidRequest(`Unsupported message role: ${role}`, `messages[${index}].role`, "invalid_value");
  }
  const draft = emptyDraft("chat", { profile: options.strict === true ? exact : lean });
  runSync(readParameters({ messages }, messagesMember, draft));
  // The schema has checked them.
  const subject = { body: {}, messages: messages as readonly ChatRequestMessage[], draft };
  runSync(applyRules(chatRules, subject, "OpenAI", draft));
  return draft.messages;
}

/**
 * The message that a generated choice is, to go on in the conversation with: its content is a string where one text was said, else its
 * parts in order. Calls whose arguments are unparseable are kept with their text; a call that was cut off is left out, since nothing
 * can answer it.
 *
 * @example
 * import { accumulate, toAssistantMessage } from "truewire";
 *
 * const { choices } = accumulate([
 *   { type: "start", choice: 0 },
 *   { type: "text-delta", choice: 0, text: "Hello" },
 *   { type: "text-delta", choice: 0, text: " world" },
 *   { type: "finish", choice: 0, reason: "stop" },
 *   { type: "end", end: { kind: "done" } },
 * ]);
 * console.log(toAssistantMessage(choices[0]));
 * // → { role: 'assistant', content: 'Hello world' }
 */
export function toAssistantMessage(choice: GeneratedChoice): AssistantMessage {
  const parts = choice.parts.flatMap((part): AssistantPart[] => {
    switch (part.type) {
      case "text":
        return [{ type: "text", text: part.text, ...(part.phase !== undefined && { phase: part.phase }) }];
      case "refusal":
        return [{ type: "refusal", refusal: part.refusal }];
      case "reasoning": {
        const { text, summary, ...rest } = part;
        return [{ text, ...rest, ...(summary.length > 0 && { summary }) }];
      }
      case "tool-call": {
        const { type, id, name, arguments: written, kind, namespace, status } = part;
        if (status === null) return [];
        const call = { type, id, name, arguments: written, ...(kind === "custom" && { kind }) };
        return [{ ...call, ...(namespace !== undefined && { namespace }) }];
      }
      case "hosted-call":
      case "hosted-result":
      case "hosted-functions":
      case "hosted-approval":
      case "item":
        return [];
    }
  });
  return { role: "assistant", content: parts.length === 0 ? "" : assistantContent(parts) };
}

/**
 * Why a model stopped, in the terms of agent frameworks: its turn is over, only this message is (it waits for the result of a call), it ran
 * out of tokens, or a filter cut it. "failed": the source itself broke off.
 */
export type StopReason = "end-of-turn" | "end-of-message" | "out-of-tokens" | "content-filter" | "failed";

/** One table for both directions: the stop reason, the finish reason of events, and OpenAI's word. */
const stopReasons = [
  ["end-of-turn", "stop", "stop"],
  ["end-of-message", "tool-calls", "tool_calls"],
  ["out-of-tokens", "length", "length"],
  ["content-filter", "content-filter", "content_filter"],
] as const satisfies readonly (readonly [StopReason, FinishReason, string])[];

/** Words of models for "this message is over, my turn is not"; on the wire they are a plain stop. */
const endOfMessage: ReadonlySet<string> = new Set(["eom", "eom_id", "<|eom_id|>"]);

/**
 * What a server's `finish_reason` means; null as long as it is null. Besides OpenAI's words it accepts those of other servers (`eos`,
 * `eom`, `max_tokens`, `tool_use`, …), in any case and with or without underscores. An unknown word means "end-of-turn", since the
 * source did end the answer. The legacy `function_call` is "end-of-message".
 *
 * @example
 * import { readStopReason } from "truewire";
 *
 * console.log(["stop", "eom", "length", "tool_calls", "because", null].map(readStopReason).join(", "));
 * // → end-of-turn, end-of-message, out-of-tokens, end-of-message, end-of-turn,
 */
export function readStopReason(word: string | null | undefined): StopReason | null {
  if (typeof word === "string" && endOfMessage.has(word.toLowerCase())) return "end-of-message";
  const read = readFinishReason(word);
  if (read === null) return null;
  const reason = read.reason === "function-call" ? "tool-calls" : read.reason;
  return stopReasons.find(([, finish]) => finish === reason)?.[0] ?? "failed";
}

/**
 * OpenAI's `finish_reason` for a stop reason. `hasCalls`: whether the message has tool calls, where that is known; then "tool_calls" is
 * said exactly if it has (a `tool_calls` without calls is an error). A failure has no word at OpenAI: null, and the
 * answer is an error instead.
 *
 * @example
 * import { writeStopReason } from "truewire";
 *
 * console.log(writeStopReason("end-of-message"), writeStopReason("end-of-turn", true), writeStopReason("out-of-tokens", true));
 * // → tool_calls tool_calls length
 */
export function writeStopReason(
  reason: StopReason,
  hasCalls?: boolean,
): "stop" | "tool_calls" | "length" | "content_filter" | null {
  const word = stopReasons.find(([stop]) => stop === reason)?.[2] ?? null;
  if (hasCalls === undefined || (word !== "stop" && word !== "tool_calls")) return word;
  return hasCalls ? "tool_calls" : "stop";
}
