import type { Tool, ToolChoice } from "../../wire/core/message.ts";
import { runSync } from "../../wire/core/steps.ts";
import { chatParameters } from "../../wire/apis/chat/request.ts";
import { writeChatTools, writeToolChoice } from "../../wire/apis/chat/write-messages.ts";
import { emptyDraft } from "../../wire/apis/request/draft.ts";
import { readParameters } from "../../wire/apis/request/parameter.ts";
import { resolveTools } from "../../wire/apis/chat/tools.ts";

const toolMembers = chatParameters.filter(({ name }) => name === "tools" || name === "tool_choice");

/**
 * Tools as a chat request has them in `tools`.
 *
 * @example
 * import { toOpenAiTools } from "truewire";
 *
 * console.log(JSON.stringify(toOpenAiTools([{ name: "now", description: "The time." }])));
 * // → [{"type":"function","function":{"name":"now","description":"The time."}}]
 */
export function toOpenAiTools(tools: readonly Tool[]): { [member: string]: unknown }[] {
  return writeChatTools(tools);
}

/**
 * The tools of a chat request's `tools`. Throws `FailureError` (400) in OpenAI's words, with the path of what is wrong.
 *
 * @example
 * import { fromOpenAiTools } from "truewire";
 *
 * console.log(fromOpenAiTools([{ type: "function", function: { name: "now", strict: false } }]));
 * // → [ { name: 'now', strict: false } ]
 * try {
 *   fromOpenAiTools([{ type: "function", function: {} }]);
 * } catch (error) {
 *   console.log(error.message);
 * }
 * // → Missing required parameter: 'tools[0].function.name'.
 */
export function fromOpenAiTools(tools: readonly unknown[]): readonly Tool[] {
  const draft = emptyDraft("chat", { forwards: true });
  runSync(readParameters({ tools }, toolMembers, draft));
  return draft.tools ?? [];
}

/**
 * A choice of tools as a chat request has it in `tool_choice`. `tools`: those of the request; a custom tool is named otherwise.
 *
 * @example
 * import { toOpenAiToolChoice } from "truewire";
 *
 * console.log(JSON.stringify(toOpenAiToolChoice({ type: "named", name: "now" }, [{ name: "now" }])));
 * // → {"type":"function","function":{"name":"now"}}
 */
export function toOpenAiToolChoice(choice: ToolChoice, tools: readonly Tool[]): unknown {
  return writeToolChoice(choice, tools);
}

/**
 * Reads a chat request's `tool_choice`. Throws `FailureError` (400) if it names a tool that the request does not have, or is not in one
 * of OpenAI's forms.
 *
 * @example
 * import { fromOpenAiToolChoice } from "truewire";
 *
 * console.log(fromOpenAiToolChoice("required", [{ name: "now" }]));
 * // → { type: 'required' }
 */
export function fromOpenAiToolChoice(choice: unknown, tools: readonly Tool[]): ToolChoice {
  const draft = emptyDraft("chat");
  runSync(readParameters({ tool_choice: choice }, toolMembers, draft));
  draft.tools = tools;
  return resolveTools(draft).toolChoice ?? { type: tools.length > 0 ? "auto" : "none" };
}
