import * as z from "zod";

/*
 * The objects of the answers of Ollama's own API, below `/api`. The keys of a shape are in the order of the wire, which is the order of the
 * fields in Go. An optional member has `omitempty` in Go: it is absent where its value is 0, "", false or an empty list. Durations are in
 * nanoseconds. Source: ollama 0.33.0, api/types.go, server/routes.go.
 */

const count = z.int().min(0);
const nanoseconds = z.int().min(0);
/** RFC 3339 with up to nine digits of a second, in UTC or with an offset. */
const time = z.iso.datetime({ offset: true });

const tokenLogprob = z.object({
  token: z.string(),
  logprob: z.number(),
  bytes: z.array(z.int().min(0).max(255)).optional(),
});

/** Source: `Logprob`. */
export const ollamaLogprob = tokenLogprob.extend({ top_logprobs: z.array(tokenLogprob).optional() });

/** A call is whole, in one line of the stream. `id` since ollama 0.12. Source: `ToolCall`. */
export const ollamaToolCall = z.object({
  id: z.string().optional(),
  function: z.object({
    index: count.optional().meta({ since: "2025-08" }),
    name: z.string(),
    arguments: z.record(z.string(), z.unknown()),
  }),
});

/** Source: `Message`. */
export const ollamaMessage = z.object({
  role: z.string(),
  content: z.string(),
  thinking: z.string().optional(),
  images: z.array(z.string()).optional(),
  tool_calls: z.array(ollamaToolCall).optional(),
  tool_name: z.string().optional(),
  tool_call_id: z.string().optional(),
});

/** Source: `Metrics`. */
const metrics = {
  total_duration: nanoseconds.optional(),
  load_duration: nanoseconds.optional(),
  prompt_eval_count: count.optional(),
  prompt_eval_duration: nanoseconds.optional(),
  eval_count: count.optional(),
  eval_duration: nanoseconds.optional(),
};

/** The prompt in place of an answer, for requests with `_debug_render_only`. Source: `DebugInfo`. */
const debugInfo = z.object({ rendered_template: z.string(), image_count: count.optional() });

/** The model at the server that has answered in place of this one. */
const remote = { remote_model: z.string().optional(), remote_host: z.string().optional() };

/** `load`: the request had no messages or prompt; `unload`: and `keep_alive` 0. Others: llm/server.go, `DoneReason`. */
export const ollamaDoneReason = z.enum(["stop", "length", "load", "unload"]);

const identity = { model: z.string(), ...remote, created_at: time };
const doneReason = z.string().optional();

/** A line of the stream of `/api/chat`, or its whole answer: both have the same form. Source: `ChatResponse`. */
export const ollamaChatResponse = z.object({
  ...identity,
  message: ollamaMessage,
  done: z.boolean(),
  done_reason: doneReason,
  _debug_info: debugInfo.optional(),
  logprobs: z.array(ollamaLogprob).optional(),
  ...metrics,
});

/** A line of the stream of `/api/generate`, or its whole answer. Source: `GenerateResponse`. */
export const ollamaGenerateResponse = z.object({
  ...identity,
  response: z.string(),
  thinking: z.string().optional(),
  done: z.boolean(),
  done_reason: doneReason,
  context: z.array(z.int()).optional(),
  ...metrics,
  tool_calls: z.array(ollamaToolCall).optional(),
  _debug_info: debugInfo.optional(),
  logprobs: z.array(ollamaLogprob).optional(),
});

/** The body of an error, and the last line of a stream that fails. */
export const ollamaError = z.object({ error: z.string() });

/** Source: `ModelDetails`. */
export const ollamaModelDetails = z.object({
  parent_model: z.string(),
  format: z.string(),
  family: z.string(),
  families: z.array(z.string()).nullable(),
  parameter_size: z.string(),
  quantization_level: z.string(),
  context_length: count.optional(),
  embedding_length: count.optional(),
});

/** Source: types/model/capability.go. */
export const ollamaCapabilities = [
  "completion",
  "tools",
  "insert",
  "vision",
  "embedding",
  "thinking",
  "image",
  "audio",
] as const;

/** Newer servers have further capabilities. */
const capabilities = z.array(z.string()).optional();

/** Source: `ListModelResponse`. */
export const ollamaListedModel = z.object({
  name: z.string(),
  model: z.string(),
  ...remote,
  modified_at: time,
  size: count,
  digest: z.string(),
  details: ollamaModelDetails,
  capabilities,
});

/** The answer of `GET /api/tags`. Source: `ListResponse`. */
export const ollamaModelList = z.object({ models: z.array(ollamaListedModel) });

/** Source: `ProcessModelResponse`. */
export const ollamaLoadedModel = z.object({
  name: z.string(),
  model: z.string(),
  size: count,
  digest: z.string(),
  details: ollamaModelDetails,
  expires_at: time,
  size_vram: count,
  context_length: count,
});

/** The answer of `GET /api/ps`. Source: `ProcessResponse`. */
export const ollamaProcessList = z.object({ models: z.array(ollamaLoadedModel) });

/** The answer of `POST /api/show`. Source: `ShowResponse`. */
export const ollamaShownModel = z.object({
  license: z.string().optional(),
  modelfile: z.string().optional(),
  parameters: z.string().optional(),
  template: z.string().optional(),
  system: z.string().optional(),
  renderer: z.string().optional(),
  parser: z.string().optional(),
  details: ollamaModelDetails,
  messages: z.array(ollamaMessage).optional(),
  ...remote,
  model_info: z.record(z.string(), z.unknown()),
  projector_info: z.record(z.string(), z.unknown()).optional(),
  tensors: z.array(z.object({ name: z.string(), type: z.string(), shape: z.array(count) })).optional(),
  capabilities,
  modified_at: time,
  requires: z.string().optional(),
});

/** The answer of `GET /api/version`. */
export const ollamaVersion = z.object({ version: z.string() });

/** The answer of `POST /api/embed`. Source: `EmbedResponse`. */
export const ollamaEmbedResponse = z.object({
  model: z.string(),
  embeddings: z.array(z.array(z.number())),
  total_duration: nanoseconds.optional(),
  load_duration: nanoseconds.optional(),
  prompt_eval_count: count.optional(),
});

/** The answer of `POST /api/embeddings`, the older form. Source: `EmbeddingResponse`. */
export const ollamaEmbeddingsResponse = z.object({ embedding: z.array(z.number()).nullable() });

/** A line of the progress of `/api/pull`, or its whole answer. Source: `ProgressResponse`. */
export const ollamaProgress = z.object({
  status: z.string(),
  digest: z.string().optional(),
  total: count.optional(),
  completed: count.optional(),
});
