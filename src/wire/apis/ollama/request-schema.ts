import * as z from "zod";
import { anyObject, list, maxCalls, maxMessages, maxParts, maxTools } from "../request/shapes.ts";

/*
 * The objects of the requests of Ollama's own API. `null` counts as absent, and unknown members are ignored, as by Go's `encoding/json`.
 * `.meta({ go })` names the type in Go, which Ollama's errors for members of a wrong type contain. Source: ollama 0.33.0,
 * api/types.go.
 */

/** Text; "" counts as absent. */
const text = z.string().nullish();
const flag = z.boolean().nullish();

/** Base64, as Go reads `[]byte`. */
const images = list(z.string().meta({ go: "api.ImageData" }), { most: maxParts }).nullish();

/**
 * How long the model stays loaded: seconds, or a duration as Go writes it (`5m`, `1h30m`). 0: unload it immediately; negative: keep it
 * loaded.
 */
export const ollamaKeepAlive = z.union([z.number(), z.string()]).nullish().meta({ go: "api.Duration" });

export const ollamaThinkLevels = ["low", "medium", "high", "max"] as const;
/** `true` and the levels turn reasoning on; `false` turns it off. Absent: a model that reasons does. Source: `ThinkValue`. */
export const ollamaThink = z
  .union([z.boolean(), z.enum(ollamaThinkLevels)])
  .nullish()
  .meta({ go: "api.ThinkValue" });

/** "json", or a JSON schema. Source: llm/server.go, `Completion`. */
export const ollamaFormat = z.union([z.string(), anyObject()]).nullish();

/** In the name of a type: a map that keeps the order of its keys, and whose values have the type that follows. */
export const orderedMap = "ordered ";

/** Source: `ToolCall`. */
export const ollamaRequestCall = z
  .object({
    id: text,
    function: z
      .object({
        index: z.int().nullish(),
        name: z.string(),
        arguments: anyObject()
          .nullish()
          .meta({ go: `${orderedMap}interface {}` }),
      })
      .meta({ go: "api.ToolCallFunction" }),
  })
  .meta({ go: "api.ToolCall" });

/** Roles other than `system`, `user`, `assistant` and `tool`, and none, depend on the model's template. Source: `Message`. */
export const ollamaRequestMessage = z
  .object({
    role: text,
    content: text,
    thinking: text,
    images,
    tool_calls: list(ollamaRequestCall, { most: maxCalls }).nullish(),
    /** The function whose result the message contains; older clients send only this. */
    tool_name: text,
    tool_call_id: text,
  })
  // Its `UnmarshalJSON` reads this type.
  .meta({ go: "api.Alias", unmarshals: true });

/** Source: `Tool`, `ToolFunction`. */
export const ollamaTool = z
  .object({
    type: text,
    items: z.unknown().optional(),
    function: z
      .object({
        name: z.string(),
        description: text,
        parameters: anyObject().nullish().meta({ go: "api.ToolFunctionParameters" }),
      })
      .meta({ go: "api.ToolFunction" }),
  })
  .meta({ go: "api.Tool" });

const of = (go: string): z.ZodType => z.unknown().meta({ go });
const schemaMembers = {
  items: z.unknown(),
  required: of("[]string"),
  properties: of(`${orderedMap}api.ToolProperty`),
};

/** The structs of what any object is taken for here, because other servers take more. */
export const goStructs: Readonly<Record<string, z.ZodObject>> = {
  "api.ToolFunctionParameters": z.object({ type: text, $defs: z.unknown(), ...schemaMembers }),
  "api.ToolProperty": z
    .object({
      anyOf: of("[]api.ToolProperty"),
      type: of("api.PropertyType"),
      description: text,
      enum: of("[]interface {}"),
      ...schemaMembers,
    })
    .meta({ unmarshals: true }),
};

const integer = z.number().nullish();
const decimal = z.number().nullish();

/**
 * The options of a model and of its runner. Ollama cuts fractions of integers, and ignores unknown options with a warning in its log.
 * `kind: "runner"`: the option is set when a model is loaded. Source: `Options`, `Runner`, `FromMap`.
 */
export const ollamaOptions = z.object({
  num_ctx: integer.meta({ go: "integer", kind: "runner" }),
  num_batch: integer.meta({ go: "integer", kind: "runner" }),
  num_gpu: integer.meta({ go: "integer", kind: "runner" }),
  main_gpu: integer.meta({ go: "integer", kind: "runner" }),
  use_mmap: flag.meta({ go: "boolean", kind: "runner" }),
  num_thread: integer.meta({ go: "integer", kind: "runner" }),
  draft_num_predict: integer.meta({ go: "integer", kind: "runner" }),
  num_keep: integer.meta({ go: "integer" }),
  seed: integer.meta({ go: "integer" }),
  num_predict: integer.meta({ go: "integer" }),
  top_k: integer.meta({ go: "integer" }),
  top_p: decimal.meta({ go: "float32" }),
  min_p: decimal.meta({ go: "float32" }),
  typical_p: decimal.meta({ go: "float32" }),
  repeat_last_n: integer.meta({ go: "integer" }),
  temperature: decimal.meta({ go: "float32" }),
  repeat_penalty: decimal.meta({ go: "float32" }),
  presence_penalty: decimal.meta({ go: "float32" }),
  frequency_penalty: decimal.meta({ go: "float32" }),
  stop: z.array(z.string()).nullish().meta({ go: "array" }),
});

const shared = { keep_alive: ollamaKeepAlive, options: anyObject().nullish().meta({ go: "map[string]interface {}" }) };

/** The members that the requests of both endpoints have. */
const generating = {
  stream: flag,
  format: ollamaFormat,
  ...shared,
  think: ollamaThink,
  /** Leave out the oldest messages of a prompt that is longer than the context; default true. */
  truncate: flag,
  /** Continue after the context is full, without its oldest tokens; default true. */
  shift: flag,
  _debug_render_only: flag,
  logprobs: flag,
  /** Alternatives for each token, 0 to 20; only with `logprobs`. */
  top_logprobs: z.int().nullish(),
};

/** The body of `POST /api/chat`. Source: `ChatRequest`. */
export const ollamaChatRequest = z
  .object({
    model: text,
    messages: list(ollamaRequestMessage, { most: maxMessages }).nullish().meta({ go: "[]api.Message" }),
    tools: list(ollamaTool, { most: maxTools }).nullish().meta({ go: "api.Tools" }),
    ...generating,
  })
  .meta({ go: "api.ChatRequest" });

/** The body of `POST /api/generate`. Source: `GenerateRequest`. */
export const ollamaGenerateRequest = z
  .object({
    model: text,
    prompt: text,
    suffix: text,
    system: text,
    template: text,
    /** The encoded conversation, from the last line of the previous answer. Deprecated by Ollama. */
    context: list(z.int(), { most: 1_000_000 }).nullish(),
    raw: flag,
    images,
    ...generating,
  })
  .meta({ go: "api.GenerateRequest" });

/** The body of `POST /api/embed`. Source: `EmbedRequest`. */
export const ollamaEmbedRequest = z
  .object({
    model: text,
    input: z.unknown().optional(),
    truncate: flag,
    dimensions: z.int().nullish(),
    ...shared,
  })
  .meta({ go: "api.EmbedRequest" });

/** The body of `POST /api/embeddings`, the older form. Source: `EmbeddingRequest`. */
export const ollamaEmbeddingsRequest = z
  .object({ model: text, prompt: text, ...shared })
  .meta({ go: "api.EmbeddingRequest" });

/** The older name of `model` in the requests about models. */
const names = { model: text, name: text };

/** The body of `POST /api/show`. Source: `ShowRequest`. */
export const ollamaShowRequest = z
  .object({ ...names, system: text, template: text, verbose: flag, options: anyObject().nullish() })
  .meta({ go: "api.ShowRequest" });

/** The body of `POST /api/pull`. Source: `PullRequest`. */
export const ollamaPullRequest = z.object({ ...names, insecure: flag, stream: flag }).meta({ go: "api.PullRequest" });
