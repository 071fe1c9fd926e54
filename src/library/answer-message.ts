import type { GeneratedChoice } from "../generation/accumulate.ts";
import type { AssistantMessage } from "../generation/message.ts";

/**
 * The message that a generated choice is, to go on in the conversation with. Content is null when only calls were made. Calls whose
 * arguments are unparseable are kept with their text (requirement C4); a call that was cut off is left out, since nothing can answer it.
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
  const { text, reasoning, refusal } = choice;
  const toolCalls = choice.toolCalls
    .filter(({ status }) => status !== null)
    .map(({ id, name, arguments: written, kind }) => ({
      id,
      name,
      arguments: written,
      ...(kind === "custom" && { kind }),
    }));
  const isSilent = toolCalls.length > 0 || refusal !== null;
  return {
    role: "assistant",
    content: text ?? (isSilent ? null : ""),
    ...(reasoning !== null && { reasoning }),
    ...(refusal !== null && { refusal }),
    ...(toolCalls.length > 0 && { toolCalls }),
  };
}
