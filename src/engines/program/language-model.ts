import { CustomInput } from "../../formats/reading/custom-input.ts";
import { parametersOf } from "../../core/custom-tool.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { FinishReason, Usage } from "../../core/events.ts";
import { languageModelPrompt } from "./language-model-prompt.ts";
import type { Program, ProgramEvent, ProgramInput, ProgramTool } from "./program.ts";

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
    const parts = new PartReader(input.tools ?? []);
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
  return input.tools?.map(definitionOf).map(({ name, description, parameters, strict }) => ({
    type: "function",
    name,
    ...(description !== undefined && { description }),
    inputSchema: parameters ?? { type: "object", properties: {} },
    ...(typeof strict === "boolean" && { strict }),
  }));
}

/** The SDK knows functions alone, so a custom tool is offered as one, with its input as the one argument. */
function definitionOf(tool: ProgramTool): JsonObject {
  const custom = customOf(tool);
  if (custom === undefined) return record(tool.function) ?? {};
  const { name, description, format } = custom;
  const { syntax, definition } = record(record(format)?.grammar) ?? {};
  const regex = syntax === "regex" &&
    typeof definition === "string" && { inputGrammar: { syntax, definition } as const };
  return { name, description, parameters: parametersOf({ name: String(name), kind: "custom", ...regex }) };
}

function customOf(tool: ProgramTool): JsonObject | undefined {
  return tool.type === "custom" ? record(tool.custom) : undefined;
}

function toolChoice(choice: unknown): unknown {
  if (typeof choice === "string") return { type: choice };
  const named = record(record(choice)?.function) ?? record(record(choice)?.custom);
  return named ? { type: "tool", toolName: named.name } : undefined;
}

/**
 * Reads stream parts. Keeps which calls were already streamed, since the SDK repeats each of them whole at its end, and what the input
 * is of those of custom tools.
 */
class PartReader {
  readonly #customTools: ReadonlySet<unknown>;
  readonly #streamed = new Set<unknown>();
  readonly #inputs = new Map<unknown, CustomInput>();

  constructor(offered: readonly ProgramTool[]) {
    this.#customTools = new Set(offered.map((tool) => customOf(tool)?.name).filter((name) => name !== undefined));
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
        // The provider runs this tool itself, so it is not a call for the client.
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
