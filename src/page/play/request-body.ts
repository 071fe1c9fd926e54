import { valueOf } from "./parameter.ts";
import type { Settings } from "./settings.ts";
import { definitionOf } from "./tool.ts";

/** Returns the messages with the system prompt before them, unless it is blank. */
export function withSystem(system: string, messages: readonly PlayMessage[]): readonly PlayMessage[] {
  return system.trim() === "" ? messages : [{ role: "system", content: system }, ...messages];
}

/** The JSON of a request to `POST /v1/chat/completions`. */
export interface ChatBody {
  readonly model: string;
  readonly messages: readonly PlayMessage[];
  readonly [name: string]: unknown;
}

/** Returns the request for the conversation so far. Throws an error for people if they must correct something first. */
export function requestBody(settings: Settings, said: readonly PlayMessage[]): ChatBody {
  const { model, system, tools, toolChoice, hostedTools, choices, alternatives } = settings;
  if (model === "") throw new Error("the server has not sent its list of models yet");
  const messages = withSystem(system, said);
  const format = responseFormat(settings);
  return {
    model,
    messages,
    stream: true,
    stream_options: { include_usage: true },
    ...(settings.wantsTimings && { include_timings: true }),
    ...parameters(settings),
    ...(tools.length > 0 && {
      tools: tools.map(definitionOf),
      ...(toolChoice !== "" && { tool_choice: choiceOf(toolChoice) }),
    }),
    ...(hostedTools.length > 0 && { hosted_tools: hostedTools, include_hosted_calls: true }),
    ...(format && { response_format: format }),
    ...(choices > 1 && { n: choices }),
    ...(alternatives !== undefined && { logprobs: true, top_logprobs: alternatives }),
  };
}

function parameters({ table, parameters }: Settings): Record<string, unknown> {
  const values = table.map((parameter) => [parameter.name, valueOf(parameter, parameters[parameter.name] ?? "")]);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as Record<string, unknown>;
}

function choiceOf(text: string): unknown {
  return text.startsWith("tool:") ? { type: "function", function: { name: text.slice("tool:".length) } } : text;
}

function responseFormat({ format, schema }: Settings): object | undefined {
  if (format === "text") return undefined;
  if (format === "json") return { type: "json_object" };
  try {
    return {
      type: "json_schema",
      json_schema: { name: "answer", strict: true, schema: JSON.parse(schema) as unknown },
    };
  } catch {
    throw new Error("the schema of the answer is no valid JSON");
  }
}

/** What the page puts into `messages`: OpenAI's chat form, as far as the page makes it. */
export type PlayMessage =
  | { readonly role: "system"; readonly content: string }
  | { readonly role: "user"; readonly content: string | readonly ContentPart[] }
  | {
      readonly role: "assistant";
      readonly content: string | null;
      /** Not OpenAI's: DeepSeek's name, which this server and most others take. */
      readonly reasoning_content?: string;
      readonly refusal?: string;
      readonly tool_calls?: readonly ToolCall[];
    }
  | { readonly role: "tool"; readonly tool_call_id: string; readonly content: string };

export type ContentPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } }
  | { readonly type: "file"; readonly file: { readonly filename: string; readonly file_data: string } };

interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}
