import type { ChatPrompt, GenerationRequest, OutputConstraint } from "../../generation/request.ts";
import { finishRequestBody, withoutUndefined, writeSampling } from "../request-dialect.ts";
import type { RequestBody, RequestDialect } from "../request-dialect.ts";
import { isObject } from "../../generation/json.ts";
import { writeMessages } from "./write-messages.ts";
import { writeFunction, writeFunctionChoice, writeToolChoice, writeTools } from "./write-tools.ts";

/**
 * The body of a chat request to another server, from the request's neutral members. One that came as a chat request goes on as it came,
 * members unknown here included, with what the dialect changes. The prompt must be a conversation.
 */
export function writeChatRequest(request: GenerationRequest, dialect: RequestDialect): RequestBody {
  const { prompt, passthrough } = request;
  if (prompt.kind !== "chat") throw new TypeError("A chat request needs a conversation.");
  const legacy = dialect.legacyFunctions ?? false;
  const came = passthrough?.dialect === "chat" ? passthrough.body : undefined;
  const body = came ? { ...came } : chatMembers(request, prompt, legacy);
  if (came && legacy !== (prompt.legacyFunctions ?? false)) {
    body["messages"] = writeMessages(prompt.messages, legacy);
    writeToolMembers(body, request, legacy);
  }
  const role = dialect.instructionRole;
  if (role) body["messages"] = (body["messages"] as unknown[]).map((message) => withRole(message, role));
  return finishRequestBody(body, request, dialect);
}

/**
 * Everything that a chat request asks for but model and stream, under the names of OpenAI and of those that extended it. `legacy`: with
 * `functions` in place of `tools`.
 */
export function chatMembers(request: GenerationRequest, prompt: ChatPrompt, legacy = false): RequestBody {
  const { template } = prompt;
  const body: RequestBody = {
    ...request.extra,
    messages: writeMessages(prompt.messages, legacy),
    ...writeSampling(request),
    ...withoutUndefined({
      parallel_tool_calls: request.parallelToolCalls,
      reasoning_effort: request.reasoning?.effort ?? (request.reasoning?.mode === "off" ? "none" : undefined),
      thinking_token_budget: request.reasoning?.budgetTokens,
      reasoning_format: request.reasoning?.inText === true ? "none" : undefined,
      prediction: request.prediction === undefined ? undefined : { type: "content", content: request.prediction },
      verbosity: request.verbosity,
      chat_template_kwargs: template.variables,
      documents: template.documents,
      add_generation_prompt: template.addGenerationPrompt,
      continue_final_message: template.continueFinalMessage,
      response_prefix: template.responsePrefix,
    }),
    ...(request.logprobs && { logprobs: true, top_logprobs: request.logprobs.top }),
    ...(request.output && writeOutput(request.output)),
  };
  writeToolMembers(body, request, legacy);
  return body;
}

/** Writes the tools in one of the two forms, and takes the other away. */
function writeToolMembers(body: RequestBody, request: GenerationRequest, legacy: boolean): void {
  const { tools, toolChoice } = request;
  for (const name of ["tools", "tool_choice", "functions", "function_call"]) delete body[name];
  if (legacy) delete body["parallel_tool_calls"];
  if (tools && tools.length > 0) {
    if (legacy) body["functions"] = tools.map(writeFunction);
    else body["tools"] = writeTools(tools);
  }
  if (toolChoice) {
    if (legacy) body["function_call"] = writeFunctionChoice(toolChoice);
    else body["tool_choice"] = writeToolChoice(toolChoice, tools ?? []);
  }
}

/** `response_format`, or the members that vLLM and llama.cpp have for what OpenAI has not. */
export function writeOutput(output: OutputConstraint): RequestBody {
  switch (output.type) {
    case "text":
      return { response_format: { type: "text" } };
    case "json-object":
      return { response_format: { type: "json_object" } };
    case "json-schema": {
      const { name, description, schema, strict } = output;
      const described = description === undefined ? {} : { description };
      return { response_format: { type: "json_schema", json_schema: { name, ...described, schema, strict } } };
    }
    case "grammar":
      return { grammar: output.gbnf };
    case "regex":
      return { guided_regex: output.pattern };
    case "choice":
      return { guided_choice: output.options };
  }
}

function withRole(message: unknown, role: "system" | "developer"): unknown {
  if (!isObject(message)) return message;
  return message["role"] === "system" || message["role"] === "developer" ? { ...message, role } : message;
}
