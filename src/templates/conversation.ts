import { invalidRequest } from "../generation/failure.ts";
import type { Content, Message, Tool, ToolCall } from "../generation/message.ts";

/** A message in the shape that chat templates read: OpenAI's, without null members. */
export interface TemplateMessage {
  readonly role: string;
  readonly [member: string]: unknown;
}

/** Which shapes a template wants. */
export interface Shapes {
  readonly arguments: "object" | "string";
}

/** The conversation as templates read it. Throws `FailureError` for what a text template cannot hold (images, P4). */
export function templateMessages(messages: readonly Message[], shapes: Shapes, warnings: string[]): TemplateMessage[] {
  const names = new Map<string, string>();
  return messages.map((message, index) => {
    const path = `messages[${index}]`;
    switch (message.role) {
      case "assistant": {
        for (const call of message.toolCalls ?? []) names.set(call.id, call.name);
        const content = message.content === null ? (message.refusal ?? null) : textOf(message.content, path);
        return defined({
          role: message.role,
          content,
          name: message.name,
          reasoning_content: message.reasoning,
          tool_calls: message.toolCalls?.map((call) => templateCall(call, shapes, `${path}.tool_calls`, warnings)),
        });
      }
      case "tool":
        return defined({
          role: message.role,
          content: textOf(message.content, path),
          tool_call_id: message.toolCallId,
          name: message.name ?? names.get(message.toolCallId),
        });
      default:
        return defined({ role: message.role, content: textOf(message.content, path), name: message.name });
    }
  });
}

/** Tools in OpenAI's shape. */
export function templateTools(tools: readonly Tool[]): unknown[] {
  return tools.map((tool) => ({
    type: "function",
    function: defined({ name: tool.name, description: tool.description, parameters: tool.parameters }),
  }));
}

function templateCall(call: ToolCall, shapes: Shapes, path: string, warnings: string[]): unknown {
  let args: unknown = call.arguments;
  if (shapes.arguments === "object") {
    try {
      args = JSON.parse(call.arguments === "" ? "{}" : call.arguments);
    } catch {
      warnings.push(`The arguments of the call ${call.id} in ${path} are not JSON; the template gets them as text.`);
    }
  }
  return { id: call.id, type: "function", function: { name: call.name, arguments: args } };
}

/** Text parts are joined with newlines, as the servers around llama.cpp and vLLM do. */
function textOf(content: Content, path: string): string {
  if (typeof content === "string") return content;
  return content
    .map((part, index) => {
      if (part.type === "text") return part.text;
      if (part.type === "refusal") return part.refusal;
      throw invalidRequest(
        `Invalid content type at ${path}.content[${index}]: this model reads text only, it cannot take a part of type '${part.type}'.`,
        `${path}.content[${index}]`,
        "unsupported_value",
      );
    })
    .join("\n");
}

function defined<T extends object>(members: T): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== null)) as T;
}
