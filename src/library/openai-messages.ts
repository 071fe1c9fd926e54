import { invalidRequest } from "../core/failure.ts";
import type { Message } from "../core/message.ts";
import { runSync } from "../core/steps.ts";
import { chatParameters } from "../apis/chat/request.ts";
import type { ChatRequestMessage } from "../apis/chat/request-schema.ts";
import { writeChatMessages } from "../apis/chat/write-messages.ts";
import { exact, lean } from "../apis/profile.ts";
import { emptyDraft } from "../apis/request/draft.ts";
import { readParameters } from "../apis/request/parameter.ts";

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
  return writeChatMessages(messages, options.legacy) as ChatRequestMessage[];
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
  const draft = emptyDraft("chat", options.strict === true ? exact : lean, false);
  runSync(readParameters({ messages }, messagesMember, draft));
  return draft.messages;
}
