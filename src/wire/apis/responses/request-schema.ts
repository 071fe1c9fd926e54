import * as z from "zod";
import { membersOf } from "../members.ts";
import type { JsonValue } from "../json-text.ts";
import { parameterFailure } from "../request/refusals.ts";
import {
  anyObject,
  decimalShape,
  expecting,
  integerShape,
  list,
  maxMessages,
  maxParts,
  maxTools,
  strings,
} from "../request/shapes.ts";
import { accessPrograms, backgroundOptions, cacheModes, cacheTtls, hostedItemTypes, serviceTiers } from "./schema.ts";

/*
 * The objects of a request to the Responses API. The schemas list the members that are read, in the order in which they are validated;
 * further members are allowed everywhere. Source: OpenAI's OpenAPI document, `CreateResponse`, `InputItem`, `Tool`.
 *
 * `.meta({ echo })`: the response repeats the parameter; the value is what it says where the request has none. Source: 920 recorded
 * responses with their requests.
 */

/** Validates one object of a request, and throws `FailureError` in OpenAI's words. `path` is the place of the object, `input[0]`. */
export function parsed<Schema extends z.ZodType>(schema: Schema, value: unknown, path: string): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw parameterFailure(path, value, result.error.issues);
}

const text = z.string();
const optionalText = z.string().nullish();
const optionalObject = anyObject().nullish();

/** One of these words. A value of another type is refused as any string is. */
function word<const Words extends readonly [string, ...string[]]>(words: Words) {
  return z.string().pipe(z.enum(words));
}

/** A list of objects of a request's part: of content parts, of tools. */
function objects<Item>(item: z.ZodType<Item>) {
  return list(item, { phrase: "an array of objects", most: maxParts });
}

/** A text, or parts that are validated one by one, each by its type. */
const textOrParts = z.union([text, objects(anyObject())], expecting("one of a string or array of objects"));

type Typed = z.ZodObject<{ type: z.ZodLiteral<string> }>;
type ByType<Schemas extends readonly Typed[]> = {
  readonly [Schema in Schemas[number] as z.output<Schema>["type"]]: z.ZodType<Omit<z.output<Schema>, "type">>;
};

/** Objects by their type, which they are read without: it may be left out, or have another name. */
function byType<const Schemas extends readonly Typed[]>(schemas: Schemas): ByType<Schemas> {
  return Object.fromEntries(
    schemas.map((schema) => [schema.shape.type.value, schema.omit({ type: true })]),
  ) as unknown as ByType<Schemas>;
}

/** Any object that says what it is. */
export const typed = z.object({ type: text });

export const cacheBreakpoint = z.object({ mode: z.literal("explicit").nullish(), ttl: optionalText }).nullish();

export const inputText = z.object({ type: z.literal("input_text"), text });
export const inputImage = z.object({
  type: z.literal("input_image"),
  /** Chat's form has the URL in an object. */
  image_url: z
    .union([text, z.object({ url: text })], { error: ({ input }) => (Array.isArray(input) ? "an object" : "a string") })
    .nullish(),
  file_id: optionalText,
  detail: optionalText,
});
export const inputFile = z.object({
  type: z.literal("input_file"),
  filename: optionalText,
  file_data: optionalText,
  file_url: optionalText,
  file_id: optionalText,
});
export const inputAudio = z.object({
  type: z.literal("input_audio"),
  input_audio: z.object({ data: text, format: text }),
});
/** The parts of what a user, a system or a tool says, by their type. */
export const inputParts = byType([inputText, inputImage, inputFile, inputAudio]);

export const spokenText = z.object({ type: z.literal("output_text"), text });
export const spokenRefusal = z.object({ type: z.literal("refusal"), refusal: text });
/** The parts of what the model has said, by their type. */
export const assistantContentParts = byType([spokenText, spokenRefusal]);

export const inputMessage = z.object({
  type: z.literal("message"),
  role: word(["assistant", "system", "developer", "user"]),
  phase: z.unknown().optional(),
  content: textOrParts,
});
/** A message of the model. */
export const assistantMessage = inputMessage.omit({ type: true }).extend({ phase: optionalText });

const steerContent = z.discriminatedUnion("type", [inputText, inputImage, inputFile], expecting("an object"));
const steerMessage = z.strictObject(
  {
    type: z.literal("message").optional(),
    role: z.literal("user"),
    content: z.union(
      [text, list(steerContent, { least: 1, most: maxParts })],
      expecting("one of a string or array of objects"),
    ),
  },
  expecting("an object"),
);
/** The `input` of `response.steer`: a text, or messages of the user. Source: openai 7.57, `ResponseSteerEvent`. */
export const steerInput = z.union(
  [text, list(steerMessage, { least: 1, most: maxMessages })],
  expecting("one of a string or array of objects"),
);

export const inputReasoning = z.object({
  type: z.literal("reasoning"),
  id: optionalText,
  content: objects(z.object({ text })).nullish(),
  summary: objects(z.object({ text })).nullish(),
  encrypted_content: optionalText,
});
export const inputFunctionCall = z.object({
  type: z.literal("function_call"),
  arguments: text,
  call_id: text,
  namespace: optionalText,
  name: text,
});
export const inputCustomCall = z.object({
  type: z.literal("custom_tool_call"),
  input: text,
  call_id: text,
  namespace: optionalText,
  name: text,
});
/** Without a `call_id`, it is an output that no call of the model has asked for, and names its tool. */
export const functionCallOutput = z.object({
  type: z.literal("function_call_output"),
  output: textOrParts,
  call_id: optionalText,
  namespace: optionalText,
  name: optionalText,
});
export const customCallOutput = z.object({
  type: z.literal("custom_tool_call_output"),
  output: textOrParts,
  call_id: text,
});
/** A search for tools by the client. */
export const inputSearchCall = z.object({
  type: z.literal("tool_search_call"),
  call_id: text,
  arguments: optionalObject,
});
export const toolSearchOutput = z.object({
  type: z.literal("tool_search_output"),
  call_id: text,
  tools: objects(anyObject()),
});
export const additionalTools = z.object({ type: z.literal("additional_tools"), tools: objects(anyObject()) });
export const itemReference = z.object({ type: z.literal("item_reference"), id: text });
/** The client's answer to an `mcp_approval_request`. */
export const approvalResponse = z.object({ approval_request_id: text, approve: z.boolean(), reason: optionalText });
export const inputCompaction = z.object({ type: z.literal("compaction"), encrypted_content: z.unknown().optional() });

const reasoningEffort = z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]).nullish();

export const jsonSchemaFormat = z.object({
  type: z.literal("json_schema"),
  name: optionalText,
  description: optionalText,
  schema: z.union([anyObject(), z.boolean()], expecting("an object")).nullish(),
  strict: z.boolean().nullish(),
});
const textFormat = z.discriminatedUnion(
  "type",
  [z.object({ type: z.literal("text") }), z.object({ type: z.literal("json_object") }), jsonSchemaFormat],
  expecting("an object"),
);
/** Changes settings of the request from its place on. */
export const configurationUpdate = z.object({
  type: z.literal("configuration_update"),
  reasoning: z.object({ effort: reasoningEffort }).nullish(),
  text: z.object({ format: textFormat.nullish() }).nullish(),
});

/** A call of one of OpenAI's own tools that the client runs, or its output. */
export const clientItem = z.looseObject({ call_id: text, status: z.string().nullish() });

/** The items that a request may contain and that are read, by their type. */
export const inputItems = byType([
  inputMessage,
  inputReasoning,
  inputFunctionCall,
  functionCallOutput,
  inputCustomCall,
  customCallOutput,
  inputSearchCall,
  toolSearchOutput,
  additionalTools,
  itemReference,
  inputCompaction,
  configurationUpdate,
]);

/** Every type of item that OpenAI knows. */
export const inputItemTypes: readonly string[] = [...Object.keys(inputItems), ...hostedItemTypes];

export const functionTool = z.object({
  name: text,
  description: optionalText,
  parameters: optionalObject,
  strict: z.boolean().nullish(),
  defer_loading: z.boolean().nullish(),
  async: z.boolean().nullish(),
  output_schema: z.unknown().optional(),
});
export const customTool = z.object({
  name: text,
  description: optionalText,
  format: optionalObject,
  async: z.boolean().nullish(),
});
export const customFormat = z.object({ type: word(["text", "grammar"]) });
export const customGrammar = z.object({ syntax: word(["lark", "regex"]), definition: text });
export const namespaceTool = z.object({ name: text, tools: objects(anyObject()) });
export const toolInNamespace = z.object({ type: word(["function", "custom"]) });
export const toolSearchTool = z.object({ execution: optionalText, parameters: optionalObject });
/** What every tool may have. */
export const toolDeclaration = z.object({ type: text, description: optionalText });

export const namedToolChoice = z.object({ name: text, namespace: optionalText });
export const allowedToolsChoice = z.object({ mode: word(["auto", "required"]), tools: objects(anyObject()) });

export const textOptions = z.object(
  { format: textFormat.nullish(), verbosity: z.enum(["low", "medium", "high"]).nullish() },
  expecting("an object"),
);
export type TextOptions = z.output<typeof textOptions>;
export type TextFormat = z.output<typeof textFormat>;

const summaryKind = z.enum(["auto", "concise", "detailed"]).nullish();
export const reasoningOptions = z.object(
  {
    effort: reasoningEffort,
    summary: summaryKind,
    /** The older name of `summary`. */
    generate_summary: summaryKind,
  },
  expecting("an object"),
);

const promptCacheOptions = z.object(
  {
    comparison_response_id: optionalText,
    mode: z.enum(cacheModes).nullish(),
    prewarm: z.boolean().nullish(),
    /** Profile `exact` takes one of `cacheTtls`. */
    ttl: optionalText,
  },
  expecting("an object"),
);

function echoed<Schema extends z.ZodType>(echo: JsonValue, schema: Schema): Schema {
  return schema.meta({ echo });
}

/** A response has the member only if its request has it. */
const whenSent = { echoWhenSent: true };

/** The body of `POST /v1/responses`: OpenAI's parameters, except `model`, `stream` and `stream_options`, which other APIs have, too. */
export const createResponse = z.object({
  access_programs: accessPrograms.meta(whenSent),
  background: echoed(false, z.boolean()),
  background_options: backgroundOptions.meta(whenSent),
  context_management: z.array(
    z.looseObject(
      { type: z.literal("compaction"), compact_threshold: integerShape(1).nullish() },
      expecting("an object"),
    ),
    expecting("an array of objects"),
  ),
  conversation: z.union([text, z.object({ id: text })], expecting("one of a conversation ID or object")),
  /** Documented for WebSocket only. */
  generate: z.boolean(),
  image: z.object({ context_compression: z.enum(["auto", "enabled", "disabled"]).nullish() }).meta(whenSent),
  include: strings(1000),
  input: z.union([text, list(z.unknown(), { most: maxMessages })], expecting("one of a string or array of objects")),
  instructions: echoed(null, z.string()),
  max_output_tokens: echoed(null, integerShape(1)),
  max_tool_calls: echoed(null, integerShape(1)),
  /** The members are counted before they are validated (`checkMetadata`). */
  metadata: echoed({}, anyObject()),
  moderation: anyObject(),
  parallel_tool_calls: echoed(true, z.boolean()),
  previous_response_id: echoed(null, z.string()),
  prompt: anyObject(),
  prompt_cache_key: echoed(null, z.string()),
  prompt_cache_options: promptCacheOptions.meta(whenSent),
  prompt_cache_retention: echoed(null, z.enum(["in_memory", "in-memory", "24h"])),
  reasoning: echoed({ effort: null, summary: null }, reasoningOptions),
  safety_identifier: echoed(null, z.string().max(64)),
  service_tier: echoed(null, z.enum(serviceTiers)),
  store: echoed(true, z.boolean()),
  temperature: echoed(1, decimalShape(0, 2)),
  text: echoed({ format: { type: "text" }, verbosity: "medium" }, textOptions),
  tool_choice: echoed("auto", z.unknown()),
  tools: echoed([], list(z.unknown(), { phrase: "an array of objects", most: maxTools })),
  top_logprobs: echoed(0, integerShape(0, 20)),
  top_p: echoed(1, decimalShape(0, 1)),
  truncation: echoed("disabled", z.enum(["auto", "disabled"])),
  user: echoed(null, z.string()),
});

/**
 * The order in which OpenAI checks the members of a request, each against its type and its range. Missing members and unknown names come
 * before it; what is not stored, an empty input, and the rules of request-rules.ts after it. Source: kangminlee-maker/local-OAuth-CLI-API-adapter,
 * docs/conformance-matrix.md, 5.5.6, pairs of mistakes sent to gpt-5.6-terra on 2026-08-30.
 */
export const responsesCheckOrder: readonly string[] = [
  "model",
  "input",
  "previous_response_id",
  "conversation",
  "prompt",
  "moderation",
  "include",
  "tools",
  "tool_choice",
  "metadata",
  "text",
  "temperature",
  "top_p",
  "presence_penalty",
  "frequency_penalty",
  "parallel_tool_calls",
  "stream",
  "stream_options",
  "background",
  "background_options",
  "max_output_tokens",
  "max_tool_calls",
  "reasoning",
  "user",
  "safety_identifier",
  "prompt_cache_options",
  "prompt_cache_key",
  "prompt_cache_retention",
  "truncation",
  "instructions",
  "store",
  "service_tier",
  "top_logprobs",
  "context_management",
];

/** The members of a response that repeat its request. `service_tier` null: the request has none. */
export interface ResponseEcho {
  readonly [member: string]: JsonValue;
  readonly background: boolean;
  readonly reasoning: { readonly effort: string | null; readonly summary: string | null; readonly context?: string };
  readonly service_tier: string | null;
  readonly store: boolean;
}

/** What a response says of a request that sets nothing. */
export const defaultEcho = {
  frequency_penalty: 0,
  presence_penalty: 0,
  ...Object.fromEntries(
    membersOf(createResponse).flatMap(({ name, schema }) => {
      const echo = schema.meta()?.["echo"];
      return echo === undefined ? [] : [[name, echo]];
    }),
  ),
} as unknown as ResponseEcho;

/** The parameters that a response repeats only if its request has them. */
export const repeatedWhenSent: ReadonlySet<string> = new Set(
  membersOf(createResponse).flatMap(({ name, schema }) => (schema.meta()?.["echoWhenSent"] === true ? [name] : [])),
);

/** `prompt_cache_options` as a response repeats it. Source: recordings of 2026-09-29. */
export function promptCacheEcho({
  comparison_response_id: id,
  mode,
  ttl,
}: z.output<typeof promptCacheOptions>): JsonValue {
  return {
    comparison_response_id: id ?? undefined,
    mode: mode ?? cacheModes[0],
    ttl: cacheTtls.find((known) => known === ttl) ?? cacheTtls[0],
  };
}

/** `reasoning` as a response repeats it. */
export function reasoningEcho({ effort, summary, generate_summary: older }: z.output<typeof reasoningOptions>) {
  return { effort: effort ?? null, summary: summary ?? older ?? null };
}

/** `text` as a response repeats it. `schema` and `strict`: of a JSON schema format. */
export function textEcho({ format, verbosity }: TextOptions, schema?: unknown, strict = false): JsonValue {
  const shown =
    format?.type === "json_schema"
      ? {
          type: format.type,
          description: format.description ?? null,
          name: format.name ?? "response",
          schema: asSent(schema),
          strict,
        }
      : { type: format?.type ?? "text" };
  return { format: shown, verbosity: verbosity ?? "medium" };
}

/** A value as the client sent it: it was read from JSON. */
export function asSent(value: unknown): JsonValue {
  return value as JsonValue;
}

/** What a request says about the form of its response. */
export interface ResponseOptions {
  readonly echo: ResponseEcho;
  /** Reasoning is shown as its summary, not as its text. */
  readonly summarizes: boolean;
  /** Reasoning items have `encrypted_content`, which clients give back. */
  readonly encryptsReasoning: boolean;
  readonly logprobs: boolean;
  /** The members that the request asks for. */
  readonly include?: readonly string[];
  /** The usage of the response is that of its engine, else 0. */
  readonly countsTokens: boolean;
  /** Estimates the tokens of the prompt, for an engine that does not count them. Absent: they are then 0. */
  readonly estimatePrompt?: () => number;
  /** `undefined`: the profile's default. */
  readonly includeObfuscation?: boolean;
  /** The tools of namespaces, by the one name under which a model knows them. */
  readonly grouped: ReadonlyMap<string, { readonly namespace: string; readonly name: string }>;
  /** The names of the tools whose calls do not wait for an output. */
  readonly asyncTools: ReadonlySet<string>;
  /** A call of `toolSearch` is the client's search for tools, an item of its own. */
  readonly searches: boolean;
  /** The names of OpenAI's own tools that the client runs: their calls are items of their own. */
  readonly clientTools: ReadonlySet<string>;
}
