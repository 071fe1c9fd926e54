import { isObject } from "../../generation/json.ts";
import type { JsonObject } from "../../generation/json.ts";
import type { FinishReason, Usage } from "../../generation/event.ts";
import { languageModelPrompt } from "./language-model-prompt.ts";
import type { Program, ProgramEvent, ProgramInput } from "./program.ts";

/**
 * An AI SDK language model as far as it is used here: specification versions v2 (ai 5) and v3 (ai 6), which differ in the form of
 * usage and finish reason only. Structural, so that no version of the SDK is a dependency.
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
    const parts = new PartReader();
    for await (const part of stream) yield* parts.read(part);
  };
}

/** The AI SDK's call options; only what the client set. */
export function callOptions(input: ProgramInput): Record<string, unknown> {
  const { options } = input;
  const stop = options.stop;
  const entries: [string, unknown][] = [
    ["maxOutputTokens", options.max_completion_tokens ?? options.max_tokens],
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
  return input.tools
    ?.map((tool) => record(tool.function))
    .filter((definition) => definition !== undefined)
    .map((definition) => ({
      type: "function",
      name: definition.name,
      ...(definition.description !== undefined && { description: definition.description }),
      inputSchema: definition.parameters ?? { type: "object", properties: {} },
      ...(typeof definition.strict === "boolean" && { strict: definition.strict }),
    }));
}

function toolChoice(choice: unknown): unknown {
  if (typeof choice === "string") return { type: choice };
  const named = record(record(choice)?.function);
  return named ? { type: "tool", toolName: named.name } : undefined;
}

/** Reads stream parts. Keeps which calls were already streamed, since the SDK repeats each of them whole at its end. */
class PartReader {
  #streamed = new Set<unknown>();

  *read(part: LanguageModelPart): Generator<ProgramEvent> {
    switch (part.type) {
      case "text-delta":
        yield { type: "text", text: String(part.delta) };
        break;
      case "reasoning-delta":
        yield { type: "reasoning", text: String(part.delta) };
        break;
      case "tool-input-start":
        // The provider runs this tool itself, so it is not a call for the client.
        if (part.providerExecuted === true) break;
        this.#streamed.add(part.id);
        yield { type: "tool-call-start", id: String(part.id), name: String(part.toolName) };
        break;
      case "tool-input-delta":
        if (this.#streamed.has(part.id)) yield { type: "tool-call-delta", arguments: String(part.delta) };
        break;
      case "tool-input-end":
        if (this.#streamed.has(part.id)) yield { type: "tool-call-end" };
        break;
      case "tool-call":
        if (this.#streamed.has(part.toolCallId) || part.providerExecuted === true) break;
        yield {
          type: "tool-call",
          id: String(part.toolCallId),
          name: String(part.toolName),
          arguments: asText(part.input),
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
}

function finishReason(reason: unknown): FinishReason {
  // v3: { unified, raw }; v2: the word itself.
  const word = record(reason)?.unified ?? reason;
  if (word === "length" || word === "tool-calls" || word === "content-filter") return word;
  if (word === "error") throw new Error("The model reported an error as its finish reason.");
  return "stop";
}

function usageOf(usage: unknown): Usage | undefined {
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = record(usage) ?? {};
  // v3 nests the counts, v2 has them side by side.
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
