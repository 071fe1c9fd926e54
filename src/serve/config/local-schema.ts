import * as z from "zod";
import { decimal, expected, flag, integer, listShape, oneOf, settings, text, wholeNumber } from "./shapes.ts";
import { bytes, time } from "./units.ts";
import { answerSettings, toolFormat } from "./answer-schema.ts";

const ggufFile = "a GGUF file, such as models/llama.gguf, or hf:owner/repo";

const cacheTypes = ["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"] as const;

const proportionsError = expected("a list of numbers such as [3, 1], not all of them 0");
/** A list of numbers; as an option it is a text. */
const proportions = z
  .union(
    [
      z.array(decimal(0)),
      z
        .string()
        .regex(/^\d+(\.\d+)?(,\d+(\.\d+)?)*$/)
        .transform((text) => text.split(",").map(Number)),
    ],
    { error: proportionsError },
  )
  .refine((numbers) => numbers.some((number) => number !== 0), { error: proportionsError });

const adapter = settings(
  {
    path: text("a GGUF file, such as style.gguf").describe("A GGUF file"),
    scale: decimal(-100, 100).optional().describe("How much of it is used where a request does not say (default 1)"),
  },
  "a mapping such as { path: style.gguf, scale: 0.5 }",
);

const draftFile = "a GGUF file, such as models/small.gguf, or hf:owner/repo";
/** A mapping, or only its path, as with --draft. */
const draft = z.union(
  [
    text(draftFile).transform((path): { path: string; maxTokens?: number | undefined } => ({ path })),
    settings(
      {
        path: text(draftFile).describe("A GGUF file, or hf:owner/repo[:quant]"),
        maxTokens: integer(1, 16)
          .optional()
          .describe("Draft tokens of an answer at most, 1 to 16 (default 15; 8 for recurrent models)"),
      },
      "a mapping such as { path: small.gguf, maxTokens: 4 }",
    ),
  ],
  { error: expected(`${draftFile}, or a mapping such as { path: small.gguf, maxTokens: 4 }`) },
);

export const localModel = settings(
  {
    kind: z.literal("local"),
    path: text(ggufFile).describe("A GGUF file, or hf:owner/repo[:quant]"),
    ...answerSettings,
    contextSize: integer(1).optional().describe("Tokens of prompt and answer together, for each slot"),
    slots: integer(1).optional().describe("Number of answers that are generated in parallel (default 4)"),
    threads: integer(1).optional().describe("CPU threads (default: all cores but one)"),
    gpu: z
      .union([z.enum(["auto", "off"]), integer(0)], { error: expected("auto, off or a number of layers") })
      .optional()
      .describe("Layers on a GPU: as many as fit (auto), none (off), or their number (default auto)"),
    splitMode: oneOf(["none", "layer", "row", "tensor"])
      .optional()
      .describe(
        "How several GPUs share the model: by layers (layer, the default), each layer (row, tensor), or one has all (none)",
      ),
    tensorSplit: proportions.optional().describe("How much each GPU gets, in proportion, such as [3, 1]"),
    mainGpu: integer(0).optional().describe("The GPU that is used alone with splitMode: none (default 0)"),
    flashAttention: oneOf(["auto", "on", "off"])
      .optional()
      .describe("Flash attention (default auto: where it is not slower)"),
    cacheTypeK: oneOf(cacheTypes).optional().describe("How the keys of attention are kept (default f16)"),
    cacheTypeV: oneOf(cacheTypes)
      .optional()
      .describe("How its values are kept; a quantized type needs flash attention (default f16)"),
    cacheMemory: bytes
      .optional()
      .describe(
        "Size of the prompt cache, in addition to the slots (default: as much as the slots have, at most 512MiB)",
      ),
    keepCache: text("a folder, such as /var/lib/truewire/cache")
      .optional()
      .describe("Where what the model knows of conversations is kept over a restart (default: nowhere)"),
    adapters: listShape(adapter, "a list such as [{ path: style.gguf }]")
      .optional()
      .describe("Changes of the model (LoRA), which requests may use: mappings with a path and a scale"),
    mmproj: text("a GGUF file, such as mmproj-F16.gguf, or off")
      .optional()
      .describe(
        "The model's projector, with which it takes images, or off (default: the one next to the model's file)",
      ),
    llamaLibraries: text("a folder, such as /opt/llama.cpp/bin")
      .optional()
      .describe("A folder with llama.cpp's libraries of version 0.5.0 (default: those of node-llama-cpp)"),
    batchSize: integer(1).optional().describe("The most tokens that are evaluated in one pass (default 512)"),
    maxTokenGap: time
      .optional()
      .describe("How long the processing of a prompt may delay the next token of running answers (default 250ms)"),
    chatTemplate: text("a file with a Jinja template, such as chat.jinja")
      .optional()
      .describe("A file with a Jinja chat template, in place of the model's own"),
    toolFormat: toolFormat.describe(
      "How the model writes tool calls and reasoning (default: found from the chat template)",
    ),
    constrainCalls: flag()
      .optional()
      .describe("Hold calls to the schemas of their tools, also of tools without strict (default true)"),
    speculation: oneOf(["auto", "off"])
      .optional()
      .describe(
        "Guess how answers go on where their text repeats: where that is faster (auto, the default) or never (off)",
      ),
    draft: draft
      .optional()
      .describe(
        "A small model that drafts how answers continue, where that is faster: a GGUF file, or a mapping with a path and maxTokens",
      ),
    pooling: oneOf(["mean", "cls", "last", "rank", "none"])
      .optional()
      .describe(
        "How one vector is made of those of a text's tokens; rank scores documents, none makes no embeddings (default: as the file says)",
      ),
    queueLimit: integer(0)
      .optional()
      .describe("Answers that may wait for a slot, of each key; more are refused with 429 (default 64)"),
    stepTimeout: time
      .refine((ms) => ms >= 1000, { error: expected("a time of 1s or more, such as 2m") })
      .optional()
      .describe("A model that makes no progress on a step for this long is restarted (default 2m)"),
    loadTimeout: time
      .refine((ms) => ms >= 1000, { error: expected("a time of 1s or more, such as 10m") })
      .optional()
      .describe("A load that makes no progress for this long fails (default 10m)"),
    modelsFolder: text("a folder, such as /var/lib/models").optional().describe("Where hf: models are stored"),
    load: oneOf(["eager", "lazy", "manual"])
      .optional()
      .describe(
        "When it is loaded: at the start (eager, the default), with the first request (lazy), or by hand (manual)",
      ),
    idleUnload: time.optional().describe("The model is unloaded after it has been idle for this long (default: never)"),
    keep: flag().optional().describe("The model is never unloaded in favor of another model"),
    defaults: settings(
      {
        temperature: decimal(0).optional(),
        topP: decimal(0, 1).optional(),
        topK: wholeNumber(0).optional(),
        minP: decimal(0, 1).optional(),
        repeatPenalty: decimal(0).optional(),
        frequencyPenalty: decimal(-2, 2).optional(),
        presencePenalty: decimal(-2, 2).optional(),
        seed: wholeNumber().optional(),
        maxTokens: wholeNumber(1).optional(),
        maxStringTokens: wholeNumber(1)
          .optional()
          .describe(
            "The most tokens of one string, where a grammar holds JSON: for small models, which do not find the end",
          ),
        maxReasoningTokens: wholeNumber(0)
          .optional()
          .describe("Maximum number of reasoning tokens of an answer, where the request sets no budget for them"),
      },
      "a mapping such as { temperature: 0.7 }",
    )
      .optional()
      .describe("Values for requests that do not set them"),
  },
  "a mapping such as { kind: local, path: model.gguf }",
).describe("A GGUF file, run by llama.cpp");
