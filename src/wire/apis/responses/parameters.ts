import * as z from "zod";
import type { JsonSchema } from "../../core/message.ts";
import type { OutputConstraint } from "../../core/request.ts";
import type { JsonValue } from "../json-text.ts";
import type { PreparesOnly } from "../port.ts";
import type { Profile } from "../profile.ts";
import { checkMetadata, checkName, checkSchema } from "../request/check-schema.ts";
import { commonParameters } from "../request/common-parameters.ts";
import type { RequestDraft } from "../request/draft.ts";
import { extensionParameters } from "../request/extension-parameters.ts";
import { anyObject } from "../request/shapes.ts";
import {
  acceptedParameter,
  asExtension,
  inOrder,
  refusedParameter,
  type RequestParameter,
  supportedParameter,
} from "../request/parameter.ts";
import {
  missingParameter,
  numberBelow,
  unknownParameter,
  unsupportedEnumValue,
  unsupportedParameter,
} from "../request/refusals.ts";
import { refuseOrWarn } from "../request/vendor-rules.ts";
import type { ConfigurationUpdate } from "./input-reader.ts";
import { toStrictSchema } from "./read-tools.ts";
import {
  asSent,
  createResponse,
  defaultEcho,
  promptCacheEcho,
  reasoningEcho,
  repeatedWhenSent,
  responsesCheckOrder,
  textEcho,
  type TextFormat,
  type TextOptions,
} from "./request-schema.ts";
import { cacheTtls } from "./schema.ts";

/** A request to `/responses` while its parameters are read. What depends on several of them is read from these when all are known. */
export interface ResponsesDraft extends RequestDraft {
  input?: string | readonly unknown[];
  instructions?: string;
  include: readonly string[];
  toolList?: readonly unknown[];
  /** `tool_choice` as the client sent it. */
  choice?: unknown;
  /** `prompt_cache_options.ttl`. */
  cacheTtl?: string;
  /** The response is to be empty. */
  prepares?: PreparesOnly;
  /** The members of the response that repeat the request, by their names. */
  readonly repeated: { [name: string]: JsonValue };
}

type ResponsesParameter = RequestParameter<ResponsesDraft>;
type Shapes = typeof createResponse.shape;
type Value<Name extends keyof Shapes> = z.output<Shapes[Name]>;
type Read<Name extends keyof Shapes> = (value: Value<Name>, draft: ResponsesDraft) => void;

const endpoints = ["responses"] as const;

/** The values of `include` that OpenAI knows. */
const includable = [
  "file_search_call.results",
  "web_search_call.results",
  "web_search_call.action.sources",
  "message.input_image.image_url",
  "computer_call_output.output.image_url",
  "code_interpreter_call.outputs",
  "reasoning.encrypted_content",
  "message.output_text.logprobs",
] as const;

/** Adds a parameter by its name; the response repeats its value where the schema says so. */
function add<Name extends keyof Shapes>(
  treat: typeof supportedParameter | typeof acceptedParameter,
  name: Name,
  note: string,
  read: Read<Name> = () => {},
): ResponsesParameter {
  const shape = createResponse.shape[name] as unknown as z.ZodType<Value<Name>>;
  return treat(name, { endpoints, note, shape }, (value: Value<Name>, draft: ResponsesDraft) => {
    if (name in defaultEcho || repeatedWhenSent.has(name)) draft.repeated[name] = asSent(value);
    read(value, draft);
  });
}

const own: readonly ResponsesParameter[] = [
  add(
    supportedParameter,
    "input",
    "A string or items. A `compaction_trigger` at the end gives a response that is one compaction. Left out, with a warning, are items of tools that OpenAI runs, reasoning that another server has encrypted, and references to items that are not stored. Items of an unknown type are left out, too; profile `exact` refuses them.",
    (value, draft) => {
      draft.input = value;
    },
  ),
  add(supportedParameter, "instructions", "The first system message.", (value, draft) => {
    draft.instructions = value;
  }),
  add(
    supportedParameter,
    "include",
    "`message.output_text.logprobs`, and `reasoning.encrypted_content`, which a client gives back in its next request. The other values concern tools that OpenAI runs.",
    readInclude,
  ),
  add(
    supportedParameter,
    "max_output_tokens",
    "At least 1, and -1 is no limit; in profile `exact` at least 16, as at OpenAI.",
    (value, draft) => {
      if (draft.profile.judgesAsVendor && value < 16) throw numberBelow("max_output_tokens", "integer", 16, value);
      draft.maxTokens = value;
    },
  ),
  add(
    supportedParameter,
    "top_logprobs",
    '0 to 20; with `include: ["message.output_text.logprobs"]`.',
    (value, draft) => {
      draft.topLogprobs = value;
    },
  ),
  add(
    supportedParameter,
    "tools",
    "Functions, custom tools (the calls of a local model follow their grammars, `regex` or `lark`), and both in a `namespace`; the model knows them as `NAMESPACE__NAME`. A `tool_search` that the client executes is a function of that name; the tools that it finds are added. OpenAI's own tools that the client runs (`shell` outside of a container, `local_shell`, `apply_patch`, `computer`, `computer_use_preview`) are functions, too, whose calls become items such as `shell_call`. Tools that OpenAI runs are left out, with a warning.",
    (value, draft) => {
      draft.toolList = value;
    },
  ),
  add(
    supportedParameter,
    "tool_choice",
    "`none`, `auto`, `required`, a tool by name, `allowed_tools`. Forcing a tool that OpenAI runs is a 400.",
    (value, draft) => {
      draft.choice = value;
    },
  ),
  add(supportedParameter, "parallel_tool_calls", "", (value, draft) => {
    draft.parallelToolCalls = value;
  }),
  add(
    supportedParameter,
    "reasoning",
    "`effort` is passed to the chat template. With `summary`, reasoning is shown as a summary, which is the reasoning itself if the model makes none. Without it, the reasoning is shown as it is.",
    (value, draft) => {
      if (value.effort) draft.reasoningEffort = value.effort;
      draft.repeated["reasoning"] = reasoningEcho(value);
    },
  ),
  add(supportedParameter, "text", "`format` constrains the answer. `verbosity` is passed on to an upstream.", readText),
  add(
    supportedParameter,
    "truncation",
    "`auto` removes the oldest turns of a conversation that is too long for the model; instructions and the last question stay. An upstream of this API does so itself.",
    (value, draft) => {
      if (value === "auto") draft.limits.overflow = "drop-oldest";
    },
  ),
  add(acceptedParameter, "metadata", "At most 16 strings.", checkMetadata),
  add(
    acceptedParameter,
    "service_tier",
    "The order in queues, as for chat. The answer names the tier: `flex`, `fast` for `fast` and `priority` (`priority` for a model that stands for GPT-5.6 or an older one), else `default`.",
    (value, draft) => {
      // Chat has no such tier.
      if (value === "ultrafast") draft.extra["service_tier"] = "priority";
    },
  ),
  add(acceptedParameter, "access_programs", "Profile `exact` repeats it."),
  add(
    acceptedParameter,
    "background_options",
    "Every response is generated as soon as possible; the answer repeats it.",
  ),
  add(acceptedParameter, "image", "Images are never compressed; profile `exact` says so."),
  add(supportedParameter, "store", "With `false`, the response is not stored (docs/responses.md)."),
  add(acceptedParameter, "max_tool_calls", "The maximum number of calls of hosted tools (docs/hosted-tools.md)."),
  add(acceptedParameter, "user", "It has no effect here."),
  acceptedParameter("client_metadata", {
    endpoints,
    note: "Codex sends it. It has no effect here.",
    shape: anyObject(),
  }),
  add(acceptedParameter, "safety_identifier", ""),
  add(acceptedParameter, "prompt_cache_key", "The cache finds the longest common beginning by itself."),
  add(acceptedParameter, "prompt_cache_retention", ""),
  add(
    supportedParameter,
    "prompt_cache_options",
    "`prewarm` processes the prompt for later requests and generates nothing (docs/responses.md). `mode` and `ttl` are repeated: the cache finds the longest common beginning by itself. Profile `exact` takes only the values of OpenAI for `ttl`.",
    readPromptCacheOptions,
  ),
  add(
    acceptedParameter,
    "context_management",
    "This server does not compact a conversation while it answers: it answers until the context is full, and `x-truewire-warning` says so (docs/responses.md). An upstream of this API compacts.",
    (value, { forwards, warnings }) => {
      if (value.length > 0 && !forwards)
        warnings.push(
          "context_management: this server does not compact the conversation; it answers until the context is full",
        );
    },
  ),
  add(
    supportedParameter,
    "background",
    "The response is generated in the background; `GET /v1/responses/{id}` retrieves it (docs/responses.md).",
  ),
  add(
    supportedParameter,
    "previous_response_id",
    "The input and output of that response precede `input`; its `instructions` do not.",
  ),
  add(
    supportedParameter,
    "generate",
    "With `false`, the response is empty, and `previous_response_id` can continue it. Codex sends instructions and tools this way before the first prompt.",
    (value, draft) => {
      if (!value) draft.prepares ??= "state";
    },
  ),
  refusedParameter(
    "stream_id",
    "openai",
    {
      endpoints,
      note: "The lane of a request on a WebSocket (docs/responses.md). On HTTP it is ignored; profile `exact` refuses it.",
      shape: z.unknown(),
    },
    (_, draft: ResponsesDraft) => {
      refuseOrWarn(unknownParameter("stream_id"), "OpenAI", draft);
    },
  ),
  add(
    supportedParameter,
    "conversation",
    "The items of that conversation precede `input`; input and output are added to it when the response is complete (docs/responses.md). Not together with `previous_response_id`.",
    (value, draft) => {
      draft.repeated["conversation"] = { id: typeof value === "string" ? value : value.id };
    },
  ),
  refuseAlways("prompt", "No prompts are stored."),
  refuseAlways("moderation", "No moderation of prompts and answers."),
];

/** Parameters of chat that Responses does not have. */
const chatOnly = new Set(["stop", "seed", "logit_bias"]);
/** Extensions of other servers that are supported here. */
const usual = new Set([
  "top_k",
  "min_p",
  "repetition_penalty",
  "repeat_penalty",
  "repeat_last_n",
  "xtc_probability",
  "xtc_threshold",
  "dry_multiplier",
  "dry_base",
  "dry_allowed_length",
  "dry_penalty_last_n",
  "dry_sequence_breakers",
  "min_tokens",
  "ignore_eos",
  "stop_token_ids",
  "cache_prompt",
  "lora",
  "chat_template_kwargs",
  "template_vars",
]);
/** Not documented, but read, and repeated by the response. */
const penalties = new Set(["frequency_penalty", "presence_penalty"]);
const shared = new Set(["model", "stream", "stream_options", "temperature", "top_p"]);

/** Every parameter of `POST /v1/responses`. */
export const responsesParameters: readonly ResponsesParameter[] = inOrder<ResponsesParameter>(
  [
    ...commonParameters.filter(({ name }) => shared.has(name) || penalties.has(name)),
    ...own,
    ...commonParameters.filter(({ name }) => chatOnly.has(name)).map(asExtension),
    ...extensionParameters.filter(({ name }) => usual.has(name)),
  ],
  responsesCheckOrder,
);

function refuseAlways(name: keyof Shapes, note: string): ResponsesParameter {
  return refusedParameter(name, "openai", { endpoints, note, shape: createResponse.shape[name] as z.ZodType }, () => {
    throw unsupportedParameter(name);
  });
}

function readInclude(value: readonly string[], draft: ResponsesDraft): void {
  draft.include = value;
  if (draft.profile.judgesAsVendor) return checkInclude(value);
  for (const [index, name] of value.entries())
    if (!includable.some((known) => known === name))
      draft.warnings.push(`include[${index}]: ${JSON.stringify(name)} is not known`);
}

/** Throws `FailureError` for a value of `include` that OpenAI does not know. */
export function checkInclude(values: readonly string[]): void {
  for (const [index, name] of values.entries())
    if (!includable.some((known) => known === name)) throw unsupportedEnumValue(`include[${index}]`, name, includable);
}

function readPromptCacheOptions(options: Value<"prompt_cache_options">, draft: ResponsesDraft): void {
  const { ttl } = options;
  const isKnown = ttl === undefined || ttl === null || cacheTtls.some((known) => known === ttl);
  if (!isKnown && !draft.forwards && draft.profile.judgesAsVendor)
    throw unsupportedEnumValue("prompt_cache_options.ttl", ttl, cacheTtls);
  draft.repeated["prompt_cache_options"] = promptCacheEcho(options);
  // For the note that an upstream of another API does not get it.
  draft.extra["prompt_cache_options"] = options;
  if (isKnown && ttl) draft.cacheTtl = ttl;
  if (options.prewarm === true) draft.prepares = "cache";
}

function readText(options: TextOptions, draft: ResponsesDraft): void {
  const { format, verbosity } = options;
  if (verbosity) draft.verbosity = verbosity;
  const constraint = format && readFormat(format, "text.format", draft.profile);
  if (constraint) draft.outputs.push({ parameter: "text.format", constraint });
  const { schema, strict } = constraint?.type === "json-schema" ? constraint : {};
  draft.repeated["text"] = textEcho(options, schema, strict);
}

/** Applies an item that changes settings of the request. The response repeats those that the request began with. */
export function applyUpdate({ item: { reasoning, text }, path }: ConfigurationUpdate, draft: ResponsesDraft): void {
  if (reasoning?.effort) draft.reasoningEffort = reasoning.effort;
  if (!text?.format) return;
  const parameter = `${path}.text.format`;
  const constraint = readFormat(text.format, parameter, draft.profile);
  draft.outputs.splice(0, Infinity, { parameter, constraint });
}

function readFormat(format: TextFormat, at: string, { judgesAsVendor }: Profile): OutputConstraint {
  if (format.type === "text") return { type: "text" };
  if (format.type === "json_object") return { type: "json-object" };
  const path = `${at}.schema`;
  const { schema: requested, name } = format;
  if (requested === undefined || requested === null) throw missingParameter(path);
  if (judgesAsVendor) {
    if (name === undefined || name === null) throw missingParameter(`${at}.name`);
    checkName(`${at}.name`, name);
  }
  const open = judgesAsVendor && format.strict === undefined && typeof requested === "object";
  const made = open ? toStrictSchema(requested) : null;
  const strict = made !== null || (format.strict ?? false);
  const schema = strict && judgesAsVendor ? withoutDialect(made ?? requested) : requested;
  const called = name ?? "response";
  if (judgesAsVendor) {
    const subject = `response_format '${called}'`;
    checkSchema(schema, strict && made === null, { subject, param: path, code: "invalid_json_schema" });
  }
  const description = format.description ?? null;
  return { type: "json-schema", name: called, ...(description !== null && { description }), schema, strict, path };
}

/** OpenAI drops `$schema` of a strict format (6 of 6 recordings), not of a function (19 of 21). */
function withoutDialect(schema: JsonSchema): JsonSchema {
  if (typeof schema === "boolean") return schema;
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => keyword !== "$schema"));
}
