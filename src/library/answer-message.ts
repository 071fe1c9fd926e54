import type { GeneratedChoice } from "../core/accumulate.ts";
import { assistantContent } from "../core/message.ts";
import type { AssistantMessage, AssistantPart } from "../core/message.ts";

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
      case "item":
        return [];
    }
  });
  return { role: "assistant", content: parts.length === 0 ? "" : assistantContent(parts) };
}
