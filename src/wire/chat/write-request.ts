import type { ChatPrompt, GenerationRequest, OutputConstraint } from "../../generation/request.ts";
import { finishRequestBody, withoutUndefined, writeSampling } from "../request-dialect.ts";
import type { RequestBody, RequestDialect } from "../request-dialect.ts";
import { isObject } from "../tolerant/tolerant-json.ts";
import { writeMessages } from "./write-messages.ts";
import { writeFunction, writeFunctionChoice, writeToolChoice, writeTools } from "./write-tools.ts";

/**
 * The body of a chat request to another server. A request that came as JSON goes on as it came, members unknown here included, with
 * what the dialect changes; one that was made in code is written from its members.
 */
export function writeChatRequest(request: GenerationRequest, prompt: ChatPrompt, dialect: RequestDialect): RequestBody {
  const cameAsJson = Array.isArray(request.body["messages"]);
  const body: RequestBody = cameAsJson ? { ...request.body } : writeMembers(request, prompt);
  const legacyAsked = prompt.legacyFunctions === true;
  const legacy = dialect.legacyFunctions ?? false;
  if (legacyAsked !== legacy) {
    body["messages"] = writeMessages(prompt.messages, legacy);
    writeToolMembers(body, request, legacy);
  }
  const role = dialect.instructionRole;
  if (role) body["messages"] = (body["messages"] as unknown[]).map((message) => withRole(message, role));
  return finishRequestBody(body, request, dialect);
}

function writeMembers(request: GenerationRequest, prompt: ChatPrompt): RequestBody {
  const { template } = prompt;
  const body: RequestBody = {
    messages: writeMessages(prompt.messages, prompt.legacyFunctions),
    ...writeSampling(request),
    ...withoutUndefined({
      parallel_tool_calls: request.parallelToolCalls,
      reasoning_effort: request.reasoning?.effort,
      chat_template_kwargs: template.variables,
      documents: template.documents,
      add_generation_prompt: template.addGenerationPrompt,
      continue_final_message: template.continueFinalMessage,
    }),
    ...(request.logprobs && { logprobs: true, top_logprobs: request.logprobs.top }),
    ...(request.output && writeOutput(request.output)),
    ...request.extra,
  };
  writeToolMembers(body, request, prompt.legacyFunctions === true);
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
function writeOutput(output: OutputConstraint): RequestBody {
  switch (output.type) {
    case "text":
      return { response_format: { type: "text" } };
    case "json-object":
      return { response_format: { type: "json_object" } };
    case "json-schema": {
      const { name, schema, strict } = output;
      return { response_format: { type: "json_schema", json_schema: { name, schema, strict } } };
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
