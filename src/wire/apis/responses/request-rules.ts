import { type FailureError, invalidRequest } from "../../core/failure.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import type { Message } from "../../core/message.ts";
import { StepCounter, type Steps } from "../../core/steps.ts";
import { openaiModel } from "../openai-models.ts";
import { listed, unknownParameter, unsupportedParameter } from "../request/refusals.ts";
import { lacksWordJson, type VendorRule } from "../request/vendor-rules.ts";
import type { ResponsesDraft } from "./parameters.ts";
import type { OpenCall } from "./known-calls.ts";

/**
 * Members of chat that have another place in Responses. Sources: an answer of 2026-09-24 (`response_format`), the matrix of
 * `responsesCheckOrder` (`messages`), and errors that clients quote (the others).
 */
const moved: Readonly<Record<string, string>> = {
  messages: "input",
  response_format: "text.format",
  max_completion_tokens: "max_output_tokens",
  reasoning_effort: "reasoning.effort",
  verbosity: "text.verbosity",
};

/** Returns the error for a member of chat that has moved. */
export function movedParameter(name: string): FailureError | undefined {
  if (!Object.hasOwn(moved, name)) return undefined;
  const message = `Unsupported parameter: '${name}'. In the Responses API, this parameter has moved to '${moved[name]}'.`;
  return invalidRequest(message, null, "unsupported_parameter");
}

/** The members of objects whose unknown members OpenAI refuses, as it does those of the request. */
const nested: Readonly<Record<string, readonly string[]>> = {
  reasoning: ["context", "effort", "mode", "summary"],
  stream_options: ["include_obfuscation"],
  text: ["format", "verbosity"],
};

/** Returns the error for the first unknown member of an object in the request. */
export function unknownNested(body: Readonly<Record<string, unknown>>): FailureError | undefined {
  for (const [name, known] of Object.entries(nested)) {
    const value = body[name];
    const unknown = isObject(value) ? Object.keys(value).find((one) => !known.includes(one)) : undefined;
    if (unknown !== undefined) return unknownParameter(`${name}.${unknown}`);
  }
  return undefined;
}

/** A request whose members are valid, each by itself. */
export interface ResponsesSubject {
  readonly body: Readonly<Record<string, unknown>>;
  readonly draft: ResponsesDraft;
  /** The conversation, without `instructions`. */
  readonly messages: readonly Message[];
  /** The first call without an output. */
  readonly openCall: OpenCall | undefined;
}

/** What OpenAI refuses across the members and items of a request, in its order. */
export const responsesRules: readonly VendorRule<ResponsesSubject>[] = [
  valueOfModel,
  unsupportedFile,
  lonelyReasoning,
  openCall,
  missingWordJson,
  windowOutsideBackground,
];

/** Source: openai-node 7.58, `background_options`. The words of the answer are not public: these are this server's. */
function windowOutsideBackground({ body }: ResponsesSubject): FailureError | undefined {
  const { background_options: options, background, stream } = body;
  const window = isObject(options) ? options["completion_window"] : undefined;
  if ((window !== "2h" && window !== "8h") || (background === true && stream !== true)) return undefined;
  const message = `Invalid value: '${window}'. This completion window requires 'background' to be true and 'stream' to be false.`;
  return invalidRequest(message, "background_options.completion_window", "invalid_value");
}

/**
 * What the model of OpenAI refuses that the requested model represents. Sources: as `openaiModel`; the matrix of `responsesCheckOrder` for the
 * order and the codes; a recording of 2026 for `top_logprobs`.
 */
function valueOfModel({ body, draft }: ResponsesSubject): FailureError | undefined {
  const { standsFor = "", reasoningEffort: effort, include } = draft;
  const { efforts, defaults } = openaiModel(standsFor);
  if (!efforts) return undefined;
  if (effort !== undefined && !efforts.includes(effort))
    return invalidRequest(
      `Unsupported value: '${effort}' is not supported with the '${standsFor}' model. Supported values are: ${listed(efforts, "and")}.`,
      "reasoning.effort",
      "unsupported_value",
    );
  if ((effort ?? defaults?.effort) === "none") return undefined;
  const usual = { temperature: 1, top_p: undefined, presence_penalty: 0, frequency_penalty: 0 };
  for (const [name, value] of Object.entries(usual)) {
    const sent = body[name] ?? undefined;
    if (sent !== undefined && sent !== value) return invalidRequest(unsupportedParameter(name).failure.message, name);
  }
  const logprobs = include.includes("message.output_text.logprobs") ? "include" : "top_logprobs";
  return logprobs === "include" || body[logprobs]
    ? invalidRequest("logprobs are not supported with reasoning models.", logprobs, "unsupported_parameter")
    : undefined;
}

/** Sound and film are no files. Source: two recordings of 2026-03-16. */
function* unsupportedFile({ body: { input } }: ResponsesSubject): Steps<FailureError | undefined> {
  const pace = new StepCounter();
  for (const [index, item] of itemsOf(input).entries()) {
    if (pace.endsStep()) yield;
    for (const member of ["content", "output"]) {
      const parts = isObject(item) ? item[member] : undefined;
      for (const [at, part] of (Array.isArray(parts) ? (parts as readonly unknown[]) : []).entries()) {
        const data = isObject(part) && part["type"] === "input_file" ? part["file_data"] : undefined;
        const [, type] =
          typeof data === "string" ? (/^data:((?:audio|video)\/[\w.+-]{1,100})[;,]/.exec(data) ?? []) : [];
        if (type === undefined) continue;
        const path = `input[${index}].${member}[${at}].file_data`;
        return invalidRequest(
          `Invalid file data: '${path}'. Expected a base64-encoded data URL with a valid file MIME type (e.g. 'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=='), but got unsupported MIME type '${type}'. Please see https://platform.openai.com/docs/assistants/tools/file-search#supported-files for supported file types.`,
          path,
          "invalid_value",
        );
      }
      if (Array.isArray(parts) && pace.endsStep(parts.length)) yield;
    }
  }
  return undefined;
}

function itemsOf(input: unknown): readonly unknown[] {
  return Array.isArray(input) ? input : [];
}

/** The item that followed reasoning in its response must follow it in a request, with its id. Source: a recording of 2025-09-12. */
function* lonelyReasoning({ body: { input } }: ResponsesSubject): Steps<FailureError | undefined> {
  const items = itemsOf(input);
  const pace = new StepCounter();
  for (const [index, item] of items.entries()) {
    if (pace.endsStep()) yield;
    if (!isObject(item) || item["type"] !== "reasoning" || typeof item["id"] !== "string") continue;
    const next = items[index + 1];
    if (!isObject(next) || !followsReasoning(next, typeof item["encrypted_content"] === "string"))
      return invalidRequest(
        `Item '${item["id"]}' of type 'reasoning' was provided without its required following item.`,
        "input",
      );
  }
  return undefined;
}

/** Reasoning that comes with the request belongs to no stored message. */
function followsReasoning({ type, role, id }: JsonObject, isEncrypted: boolean): boolean {
  if (role === "assistant") return isEncrypted || typeof id === "string";
  return typeof type === "string" && (type === "reasoning" || type === "item_reference" || type.endsWith("_call"));
}

/** Source: openai/codex#93; `param` and `code` as those of an output without a call (microsoft/vscode#320060). */
function openCall({ openCall: call }: ResponsesSubject): FailureError | undefined {
  if (!call) return undefined;
  const kind = call.type === "function_call" ? "function call" : "custom tool call";
  return invalidRequest(`No tool output found for ${kind} ${call.id}.`, "input");
}

/** Source: a recording of 2026-10-01. `instructions` do not count. */
function* missingWordJson({ draft, messages }: ResponsesSubject): Steps<FailureError | undefined> {
  if (draft.outputs[0]?.constraint.type !== "json-object" || !(yield* lacksWordJson(messages))) return undefined;
  return invalidRequest(
    "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.",
    "text.format",
  );
}
