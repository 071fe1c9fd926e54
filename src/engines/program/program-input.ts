import type { GenerationRequest } from "../../generation/request.ts";
import type { ProgramInput, ProgramMessage, ProgramTool } from "./program.ts";

/** Members of a request that a program gets under another name, or that concern the wire alone. */
const notOptions = new Set([
  "messages",
  "prompt",
  "tools",
  "functions",
  "model",
  "stream",
  "stream_options",
  "n",
  "best_of",
  "echo",
]);

/** What one run of a program gets: one choice of one prompt of a request. */
export function programInput(request: GenerationRequest, choice: number, signal: AbortSignal): ProgramInput {
  const { body, output } = request;
  const tools = toolsOf(body);
  const options: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body)) {
    if (!notOptions.has(name) && value !== null) options[name] = value;
  }
  return {
    messages: messagesOf(request, choice),
    ...(tools && { tools }),
    model: request.model,
    options,
    ...(output?.type === "json-schema" && {
      responseSchema: { name: output.name, schema: output.schema, strict: output.strict },
    }),
    signal,
    request: { id: request.id, stream: request.stream, choice, body },
  };
}

/** The number of runs that a request asks for: choices × prompts, numbered as OpenAI numbers them. */
export function choicesOf(request: GenerationRequest): number {
  return (request.n ?? 1) * (request.prompt.kind === "text" ? request.prompt.prompts.length : 1);
}

function messagesOf(request: GenerationRequest, choice: number): readonly ProgramMessage[] {
  if (request.prompt.kind === "chat") return request.body.messages as readonly ProgramMessage[];
  const prompt = request.prompt.prompts[Math.floor(choice / (request.n ?? 1))];
  return [{ role: "user", content: prompt }];
}

function toolsOf(body: Readonly<Record<string, unknown>>): readonly ProgramTool[] | undefined {
  if (Array.isArray(body.tools)) return body.tools as readonly ProgramTool[];
  if (!Array.isArray(body.functions)) return undefined;
  return body.functions.map((definition: unknown) => ({ type: "function", function: definition }));
}
