import { z } from "zod";
import { invalidRequest } from "../../core/failure.ts";
import type { JsonSchema } from "../../core/message.ts";
import type { OutputConstraint } from "../../core/request.ts";
import { checkMetadata } from "../request/check-metadata.ts";
import { metadataShape } from "../request/metadata-shape.ts";
import { commonParameters } from "../request/common-parameters.ts";
import { extensionParameters } from "../request/extension-parameters.ts";
import { checkName } from "../request/check-name.ts";
import { accepted, extension, honoured, refused } from "../request/parameter.ts";
import type { Parameter } from "../request/parameter.ts";
import { missingParameter, numberBelow, unsupportedEnumValue, unsupportedParameter } from "../request/refusals.ts";
import { mostMessages, mostTools } from "../request/size-limits.ts";
import { anyObject, expecting, integer, list, strings } from "../request/shapes.ts";
import { checkSchema } from "../request/check-schema.ts";
import { madeStrict } from "./made-strict.ts";
import { asSent } from "./read-tools.ts";
import type { ResponsesDraft } from "./responses-draft.ts";

type ResponsesParameter = Parameter<ResponsesDraft>;

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

const textShape = z.object(
  {
    format: z
      .discriminatedUnion(
        "type",
        [
          z.object({ type: z.literal("text") }),
          z.object({ type: z.literal("json_object") }),
          z.object({
            type: z.literal("json_schema"),
            name: z.string().nullish(),
            description: z.string().nullish(),
            schema: z.union([anyObject(), z.boolean()], expecting("an object")).nullish(),
            strict: z.boolean().nullish(),
          }),
        ],
        expecting("an object"),
      )
      .nullish(),
    verbosity: z.enum(["low", "medium", "high"]).nullish(),
  },
  expecting("an object"),
);

const reasoningShape = z.object(
  {
    effort: z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]).nullish(),
    summary: z.enum(["auto", "concise", "detailed"]).nullish(),
    generate_summary: z.enum(["auto", "concise", "detailed"]).nullish(),
  },
  expecting("an object"),
);

/** A parameter whose value the response repeats, and which has no other effect. */
function repeated<Value>(
  name: string,
  shape: z.ZodType<Value>,
  repeat: (value: Value, told: ResponsesDraft["told"]) => void,
  note = "",
): ResponsesParameter {
  return accepted(name, { endpoints, note, shape }, (value, { told }: ResponsesDraft) => repeat(value, told));
}

const own: readonly ResponsesParameter[] = [
  honoured(
    "input",
    {
      endpoints,
      note: "A string or items. Items of tools that OpenAI runs, thoughts that others have sealed, and references to items that are not stored are left out, with a warning; items of an unknown type, too, but in profile `exact` they are refused.",
      shape: z.union(
        [z.string(), list(z.unknown(), { most: mostMessages })],
        expecting("one of a string or array of objects"),
      ),
    },
    (value, draft: ResponsesDraft) => {
      draft.input = value;
    },
  ),
  honoured(
    "instructions",
    { endpoints, note: "The first system message.", shape: z.string() },
    (value, draft: ResponsesDraft) => {
      draft.instructions = value;
      draft.told.instructions = value;
    },
  ),
  honoured(
    "include",
    {
      endpoints,
      note: "`message.output_text.logprobs`, and `reasoning.encrypted_content`: thoughts sealed, so that a client can give them back; the other values ask about tools that OpenAI runs.",
      shape: strings(1000),
    },
    readInclude,
  ),
  honoured(
    "max_output_tokens",
    { endpoints, note: "At least 1; in profile `exact` 16, as at OpenAI.", shape: integer(1) },
    (value, draft: ResponsesDraft) => {
      if (draft.profile.judgesAsVendor && value < 16) throw numberBelow("max_output_tokens", "integer", 16, value);
      draft.maxTokens = value;
      draft.told.maxOutputTokens = value;
    },
  ),
  honoured(
    "top_logprobs",
    { endpoints, note: '0 to 20; with `include: ["message.output_text.logprobs"]`.', shape: integer(0, 20) },
    (value, draft: ResponsesDraft) => {
      draft.topLogprobs = value;
      draft.told.topLogprobs = value;
    },
  ),
  honoured(
    "tools",
    {
      endpoints,
      note: "Functions, custom tools (a local model's calls are held to their grammars, `regex` or `lark`), and both in a `namespace`, which a model knows as `NAMESPACE__NAME`. A `tool_search` that the client executes is a function of that name; what it finds is added. Tools that OpenAI runs are left out, with a warning.",
      shape: list(z.unknown(), { phrase: "an array of objects", most: mostTools }),
    },
    (value, draft: ResponsesDraft) => {
      draft.toolList = value;
    },
  ),
  honoured(
    "tool_choice",
    {
      endpoints,
      note: "`none`, `auto`, `required`, a tool by name, `allowed_tools`. To force a tool that OpenAI runs is a 400.",
      shape: z.unknown(),
    },
    (value, draft: ResponsesDraft) => {
      draft.choice = value;
      draft.told.toolChoice = asSent(value);
    },
  ),
  honoured("parallel_tool_calls", { endpoints, shape: z.boolean() }, (value, draft: ResponsesDraft) => {
    draft.parallelToolCalls = value;
    draft.told.parallelToolCalls = value;
  }),
  honoured(
    "reasoning",
    {
      endpoints,
      note: "`effort` is given to the chat template. With `summary`, thoughts are shown as their summary, which is the thoughts themselves where the model makes none; without, as they are.",
      shape: reasoningShape,
    },
    ({ effort, summary, generate_summary: older }, draft: ResponsesDraft) => {
      if (effort) draft.reasoningEffort = effort;
      draft.told.reasoning = { effort: effort ?? null, summary: summary ?? older ?? null };
    },
  ),
  honoured(
    "text",
    { endpoints, note: "`format` binds the answer. `verbosity` is passed on to an upstream.", shape: textShape },
    ({ format, verbosity }, draft: ResponsesDraft) => {
      if (format) readFormat(format, draft);
      if (!verbosity) return;
      draft.verbosity = verbosity;
      draft.told.verbosity = verbosity;
    },
  ),
  honoured(
    "truncation",
    {
      endpoints,
      note: "`auto` leaves out the oldest turns of a conversation that the model refuses as too long; instructions and the last question stay. An upstream of this API does it itself.",
      shape: z.enum(["auto", "disabled"]),
    },
    (value, draft: ResponsesDraft) => {
      if (value === "auto") draft.limits.overflow = "drop-oldest";
      draft.told.truncation = value;
    },
  ),
  repeated(
    "metadata",
    metadataShape,
    (value, told) => {
      checkMetadata(value);
      told.metadata = asSent(value);
    },
    "At most 16 strings.",
  ),
  repeated(
    "service_tier",
    z.enum(["auto", "default", "flex", "scale", "priority", "fast"]),
    (value, told) => {
      told.serviceTier = value;
    },
    "There is one tier.",
  ),
  honoured(
    "store",
    {
      endpoints,
      note: "With `false`, nothing of the response is kept (docs/responses.md).",
      shape: z.boolean(),
    },
    (value, { told }: ResponsesDraft) => {
      told.store = value;
    },
  ),
  repeated(
    "max_tool_calls",
    integer(1),
    (value, told) => {
      told.maxToolCalls = value;
    },
    "It counts tools that OpenAI runs.",
  ),
  repeated(
    "user",
    z.string(),
    (value, told) => {
      told.user = value;
    },
    "Nothing here depends on who asks.",
  ),
  repeated("safety_identifier", z.string().max(64), (value, told) => {
    told.safetyIdentifier = value;
  }),
  repeated(
    "prompt_cache_key",
    z.string(),
    (value, told) => {
      told.promptCacheKey = value;
    },
    "The cache finds the longest common beginning by itself.",
  ),
  repeated("prompt_cache_retention", z.enum(["in_memory", "in-memory", "24h"]), (value, told) => {
    told.promptCacheRetention = value;
  }),
  accepted("prompt_cache_options", { endpoints, shape: anyObject() }),
  accepted("context_management", {
    endpoints,
    note: "Nothing is compacted.",
    shape: z.array(anyObject(), expecting("an array of objects")),
  }),
  honoured(
    "background",
    {
      endpoints,
      note: "The answer goes on without its client, who asks for it by `GET /v1/responses/{id}` (docs/responses.md).",
      shape: z.boolean(),
    },
    (value, { told }: ResponsesDraft) => {
      told.background = value;
    },
  ),
  honoured(
    "previous_response_id",
    {
      endpoints,
      note: "What went into that response and came out of it stands before `input`; its `instructions` do not.",
      shape: z.string(),
    },
    (value, { told }: ResponsesDraft) => {
      told.previousResponseId = value;
    },
  ),
  honoured(
    "generate",
    {
      endpoints,
      note: "With `false`, the answer is empty, and `previous_response_id` goes on from it: Codex sends so what it will need, before anybody has asked anything.",
      shape: z.boolean(),
    },
    (value, draft: ResponsesDraft) => {
      draft.preparesOnly = !value;
    },
  ),
  refuseAlways("conversation", "No conversations are stored.", z.union([z.string(), anyObject()])),
  refuseAlways("prompt", "No prompts are stored.", anyObject()),
  refuseAlways("moderation", "No moderation of prompts and answers.", anyObject()),
];

/** Parameters of chat that Responses has not: profile `exact` refuses them, as OpenAI does. */
const chatOnly = new Set(["stop", "seed", "frequency_penalty", "presence_penalty", "logit_bias"]);
/** Those that other servers have made usual, and that have a meaning here. */
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
const shared = new Set(["model", "stream", "stream_options", "temperature", "top_p"]);

/** Every parameter of `POST /v1/responses`. */
export const responsesParameters: readonly ResponsesParameter[] = [
  ...commonParameters.filter(({ name }) => shared.has(name)),
  ...own,
  ...commonParameters.filter(({ name }) => chatOnly.has(name)).map(asExtension),
  ...extensionParameters.filter(({ name }) => usual.has(name)),
];

function asExtension({ name, shape, note, read }: Parameter): ResponsesParameter {
  return extension(name, { endpoints, note, shape }, (value, draft: ResponsesDraft) => {
    if (draft.profile.judgesAsVendor) throw invalidRequest(`Unknown parameter: '${name}'.`, name, "unknown_parameter");
    read(value, draft);
  });
}

function refuseAlways<T>(name: string, note: string, shape: z.ZodType<T>): ResponsesParameter {
  return refused(name, "openai", { endpoints, note, shape }, () => {
    throw unsupportedParameter(name);
  });
}

function readInclude(value: readonly string[], draft: ResponsesDraft): void {
  draft.include = value;
  for (const [index, name] of value.entries()) {
    if (includable.some((known) => known === name)) continue;
    const path = `include[${index}]`;
    if (draft.profile.judgesAsVendor) throw unsupportedEnumValue(path, name, includable);
    draft.warnings.push(`${path}: ${JSON.stringify(name)} is not known`);
  }
}

function readFormat(format: NonNullable<z.infer<typeof textShape>["format"]>, draft: ResponsesDraft): void {
  const add = (constraint: OutputConstraint): void => {
    draft.outputs.push({ parameter: "text.format", constraint });
  };
  if (format.type === "text") return add({ type: "text" });
  if (format.type === "json_object") {
    draft.told.textFormat = { type: "json_object" };
    return add({ type: "json-object" });
  }
  const { judgesAsVendor } = draft.profile;
  const path = "text.format.schema";
  const { schema: asked, name = null } = format;
  if (asked === undefined || asked === null) throw missingParameter(path);
  if (judgesAsVendor) {
    if (name === null) throw missingParameter("text.format.name");
    checkName("text.format.name", name);
  }
  const made = judgesAsVendor && format.strict === undefined && typeof asked === "object" ? madeStrict(asked) : null;
  const strict = made !== null || (format.strict ?? false);
  const schema = strict && judgesAsVendor ? withoutDialect(made ?? asked) : asked;
  if (judgesAsVendor) {
    const subject = `response_format '${name ?? "response"}'`;
    checkSchema(schema, strict && made === null, { subject, param: path, code: "invalid_json_schema" });
  }
  const description = format.description ?? null;
  const called = name ?? "response";
  draft.told.textFormat = { type: "json_schema", description, name: called, schema: asSent(schema), strict };
  add({ type: "json-schema", name: called, ...(description !== null && { description }), schema, strict, path });
}

/** OpenAI drops `$schema` of a strict format (6 of 6 recordings), not of a function (19 of 21). */
function withoutDialect(schema: JsonSchema): JsonSchema {
  if (typeof schema === "boolean") return schema;
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => keyword !== "$schema"));
}
