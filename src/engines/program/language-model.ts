import { CustomInput } from "../../text/formats/reading/custom-input.ts";
import { parametersOf, argumentsOfInput } from "../../wire/core/custom-tool.ts";
import { isObject } from "../../wire/core/json.ts";
import type { JsonObject } from "../../wire/core/json.ts";
import type { FinishReason, Usage } from "../../wire/core/events.ts";
import type { ProgramMessage, ProgramTool } from "../../wire/apis/chat/request-types.ts";
import type { Program, ProgramEvent, ProgramInput } from "../../wire/apis/chat/program.ts";
import { unsupportedPart } from "../../wire/core/unreadable-part.ts";

/**
 * The members of an AI SDK language model that are used here: specification versions v2 (ai 5) and v3 (ai 6), which differ in the form of
 * usage and finish reason only. A structural type, so that the SDK is not a dependency.
 * Source: the AI SDK's provider specification, `LanguageModelV3`.
 */
export interface LanguageModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  doStream(options: Record<string, unknown>): PromiseLike<{ stream: ReadableStream<LanguageModelPart> }>;
}

interface LanguageModelPart {
  readonly type: string;
  readonly [member: string]: unknown;
}

export function isLanguageModel(value: unknown): value is LanguageModel {
  return (
    typeof value === "object" &&
    value !== null &&
    "doStream" in value &&
    typeof value.doStream === "function" &&
    "specificationVersion" in value &&
    typeof value.specificationVersion === "string"
  );
}

/** The model as a program: request in, stream parts out. */
export function languageModelProgram(model: LanguageModel): Program {
  return async function* (input) {
    const { stream } = await model.doStream(callOptions(input));
    const parts = new PartReader(input.tools ?? []);
    for await (const part of stream) yield* parts.read(part);
  };
}

/** The AI SDK's call options. Contains only what the client set. */
export function callOptions(input: ProgramInput): Record<string, unknown> {
  const { options } = input;
  const stop = options.stop;
  const entries: [string, unknown][] = [
    ["maxOutputTokens", options.max_tokens],
    ["temperature", options.temperature],
    ["topP", options.top_p],
    ["topK", options.top_k],
    ["presencePenalty", options.presence_penalty],
    ["frequencyPenalty", options.frequency_penalty],
    ["seed", options.seed],
    ["stopSequences", typeof stop === "string" ? [stop] : stop],
    ["responseFormat", responseFormat(input)],
    ["tools", tools(input)],
    ["toolChoice", toolChoice(options.tool_choice)],
  ];
  return {
    prompt: languageModelPrompt(input.messages),
    ...Object.fromEntries(entries.filter(([, value]) => value !== undefined)),
    abortSignal: input.signal,
  };
}

function responseFormat(input: ProgramInput): unknown {
  if (input.responseSchema)
    return { type: "json", name: input.responseSchema.name, schema: input.responseSchema.schema };
  const format = record(input.options.response_format);
  return format?.type === "json_object" ? { type: "json" } : undefined;
}

function tools(input: ProgramInput): unknown {
  return input.tools?.map(definitionOf).map(({ name, description, parameters, strict }) => ({
    type: "function",
    name,
    ...(description !== undefined && { description }),
    inputSchema: parameters ?? { type: "object", properties: {} },
    ...(typeof strict === "boolean" && { strict }),
  }));
}

/** The SDK has functions only, so a custom tool becomes a function with its input as the only argument. */
function definitionOf(tool: ProgramTool) {
  if (tool.type === "function") return tool.function;
  const { name, description, format } = tool.custom;
  const grammar = format?.type === "grammar" ? format.grammar : undefined;
  const { syntax, definition } = grammar ?? {};
  const regex = syntax === "regex" && definition !== undefined && { inputGrammar: { syntax, definition } };
  return { name, description, parameters: parametersOf({ name, kind: "custom", ...regex }), strict: undefined };
}

function toolChoice(choice: unknown): unknown {
  if (typeof choice === "string") return { type: choice };
  const named = record(record(choice)?.function) ?? record(record(choice)?.custom);
  return named ? { type: "tool", toolName: named.name } : undefined;
}

/** Reads stream parts. The SDK repeats each streamed call as a whole at its end, so the ids of streamed calls are recorded. */
class PartReader {
  readonly #customTools: ReadonlySet<unknown>;
  readonly #streamed = new Set<unknown>();
  readonly #inputs = new Map<unknown, CustomInput>();

  constructor(offered: readonly ProgramTool[]) {
    this.#customTools = new Set(offered.flatMap((tool) => (tool.type === "custom" ? [tool.custom.name] : [])));
  }

  *read(part: LanguageModelPart): Generator<ProgramEvent> {
    switch (part.type) {
      case "text-delta":
        yield { type: "text", text: String(part.delta) };
        break;
      case "reasoning-delta":
        yield { type: "reasoning", text: String(part.delta) };
        break;
      case "tool-input-start":
        // The provider runs this tool itself: the client must not.
        if (part.providerExecuted === true) break;
        this.#streamed.add(part.id);
        if (this.#customTools.has(part.toolName)) this.#inputs.set(part.id, new CustomInput());
        yield { type: "tool-call-start", id: String(part.id), name: String(part.toolName) };
        break;
      case "tool-input-delta": {
        if (!this.#streamed.has(part.id)) break;
        const delta = String(part.delta);
        yield { type: "tool-call-delta", arguments: this.#inputs.get(part.id)?.push(delta) ?? delta };
        break;
      }
      case "tool-input-end": {
        if (!this.#streamed.has(part.id)) break;
        const rest = this.#inputs.get(part.id)?.end();
        if (rest) yield { type: "tool-call-delta", arguments: rest };
        yield { type: "tool-call-end" };
        break;
      }
      case "tool-call":
        if (this.#streamed.has(part.toolCallId) || part.providerExecuted === true) break;
        yield {
          type: "tool-call",
          id: String(part.toolCallId),
          name: String(part.toolName),
          arguments: this.#inputOf(part),
        };
        break;
      case "source":
        yield { type: "extra", value: { annotations: [annotation(part)] } };
        break;
      case "finish": {
        const usage = usageOf(part.usage);
        if (usage) yield { type: "usage", usage };
        yield { type: "finish", reason: finishReason(part.finishReason) };
        break;
      }
      case "error":
        throw part.error instanceof Error ? part.error : new Error(asText(part.error));
    }
  }

  #inputOf({ toolName, input }: LanguageModelPart): string {
    const written = asText(input);
    if (!this.#customTools.has(toolName)) return written;
    const reader = new CustomInput();
    return reader.push(written) + reader.end();
  }
}

function finishReason(reason: unknown): FinishReason {
  // v3: { unified, raw }; v2: a string.
  const word = record(reason)?.unified ?? reason;
  if (word === "length" || word === "tool-calls" || word === "content-filter") return word;
  if (word === "error") throw new Error("The model reported an error as its finish reason.");
  return "stop";
}

function usageOf(usage: unknown): Usage | undefined {
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = record(usage) ?? {};
  // v3 nests the counts, v2 has them in one object.
  const prompt = number(record(inputTokens)?.total ?? inputTokens);
  const completion = number(record(outputTokens)?.total ?? outputTokens);
  if (prompt === undefined || completion === undefined) return undefined;
  const cached = number(record(inputTokens)?.cacheRead ?? cachedInputTokens);
  const reasoning = number(record(outputTokens)?.reasoning ?? reasoningTokens);
  return {
    promptTokens: prompt,
    completionTokens: completion,
    ...(cached !== undefined && { promptDetails: { cached_tokens: cached } }),
    ...(reasoning !== undefined && { completionDetails: { reasoning_tokens: reasoning } }),
  };
}

function annotation(part: LanguageModelPart): unknown {
  return { type: "url_citation", url_citation: { url: part.url, title: part.title } };
}

function record(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}

function number(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/**
 * Converts OpenAI's messages to the AI SDK's prompt. Source: the SDK's `LanguageModelV3Prompt`; v2 has the same form. Throws
 * `FailureError` with the path of a part that the prompt cannot contain.
 */
function languageModelPrompt(messages: readonly ProgramMessage[]): unknown[] {
  const names = new Map<unknown, unknown>();
  return messages.map((message, index) => {
    const path = `messages[${index}]`;
    switch (message.role) {
      case "system":
      case "developer":
        return { role: "system", content: joinedText(message.content) };
      case "user":
        return { role: "user", content: userParts(message.content, path) };
      case "assistant": {
        const calls = assistantCalls(message);
        for (const call of calls) names.set(call.toolCallId, call.toolName);
        return { role: "assistant", content: [...assistantText(message), ...calls] };
      }
      case "tool":
        return { role: "tool", content: [toolResult(message, names)] };
    }
  });
}

function userParts(content: unknown, path: string): unknown[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return partsOf(content).map((part, index) => {
    const image = part.image_url as { url?: unknown } | undefined;
    if (part.type === "text") return { type: "text", text: part.text };
    if (part.type === "image_url" && typeof image?.url === "string") return imagePart(image.url);
    throw unsupportedPart(`a part of type '${part.type}'`, `${path}.content[${index}]`, { reads: "text and images" });
  });
}

function imagePart(url: string): unknown {
  const data = /^data:([^;,]+);base64,(.*)$/s.exec(url);
  if (data) return { type: "file", mediaType: data[1], data: data[2] };
  return { type: "file", mediaType: "image/*", data: new URL(url) };
}

type MessageOf<Role> = Extract<ProgramMessage, { readonly role: Role }>;

function assistantText(message: MessageOf<"assistant">): unknown[] {
  const parts: unknown[] = [];
  const reasoning = message.reasoning_content ?? "";
  if (reasoning !== "") parts.push({ type: "reasoning", text: reasoning });
  const text = joinedText(message.content);
  if (text !== "") parts.push({ type: "text", text });
  return parts;
}

function assistantCalls({
  tool_calls: calls = [],
}: MessageOf<"assistant">): { toolCallId: unknown; toolName: unknown }[] {
  return calls.map((call) => ({
    type: "tool-call",
    toolCallId: call.id,
    // The SDK has functions only, so the input of a custom tool becomes an argument.
    ...(call.type === "custom"
      ? { toolName: call.custom.name, input: argumentsOfInput(call.custom.input) }
      : { toolName: call.function.name, input: jsonOr(call.function.arguments) }),
  }));
}

function toolResult(message: MessageOf<"tool">, names: ReadonlyMap<unknown, unknown>): unknown {
  const id = message.tool_call_id;
  return {
    type: "tool-result",
    toolCallId: id,
    toolName: names.get(id) ?? message.name ?? "",
    output: { type: "text", value: joinedText(message.content) },
  };
}

function joinedText(content: unknown): string {
  if (typeof content === "string") return content;
  return partsOf(content)
    .map((part) => (typeof part.text === "string" ? part.text : typeof part.refusal === "string" ? part.refusal : ""))
    .join("");
}

function partsOf(content: unknown): Record<string, unknown>[] {
  return Array.isArray(content) ? (content as Record<string, unknown>[]) : [];
}

/** The parsed arguments of a call; arguments that are not JSON are passed on as text. */
function jsonOr(text: unknown): unknown {
  if (typeof text !== "string") return text ?? {};
  try {
    return JSON.parse(text === "" ? "{}" : text);
  } catch {
    return text;
  }
}
