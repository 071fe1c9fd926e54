import type { GenerationRequest } from "../../core/request.ts";
import { chatMembers } from "../../apis/chat/write-request.ts";
import { completionMembers } from "../../apis/completions/write-request.ts";
import { writeMessages } from "../../apis/chat/write-messages.ts";
import { writeTools } from "../../apis/chat/write-tools.ts";
import type { ProgramInput, ProgramMessage, ProgramTool } from "./program.ts";

/** Members of a request that a program gets under another name, or that concern the wire alone. */
const notOptions = new Set(["messages", "prompt", "tools", "functions", "n", "best_of", "echo"]);

/** What one run of a program gets: one choice of one prompt of a request. */
export function programInput(request: GenerationRequest, choice: number, signal: AbortSignal): ProgramInput {
  const { output, prompt, tools } = request;
  const members = prompt.kind === "chat" ? chatMembers(request, prompt) : completionMembers(request, prompt);
  const options: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(members)) {
    if (!notOptions.has(name) && value !== null) options[name] = value;
  }
  return {
    messages: messagesOf(request, choice),
    ...(tools && tools.length > 0 && { tools: writeTools(tools) as unknown as readonly ProgramTool[] }),
    model: request.model,
    options,
    ...(output?.type === "json-schema" && {
      responseSchema: { name: output.name, schema: output.schema, strict: output.strict },
    }),
    signal,
    request: { id: request.id, stream: request.stream, choice },
  };
}

/** The number of runs that a request asks for: choices × prompts, numbered as OpenAI numbers them. */
export function choicesOf(request: GenerationRequest): number {
  return (request.n ?? 1) * (request.prompt.kind === "text" ? request.prompt.prompts.length : 1);
}

function messagesOf({ prompt, n = 1 }: GenerationRequest, choice: number): readonly ProgramMessage[] {
  if (prompt.kind === "chat") return writeMessages(prompt.messages) as unknown as readonly ProgramMessage[];
  return [{ role: "user", content: prompt.prompts[Math.floor(choice / n)] }];
}
