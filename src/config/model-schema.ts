import { z } from "zod";
import type { EngineModel, LocalModel, ProgramModel, UpstreamModel, UpstreamTimeouts, WireName } from "./config.ts";
import { formatSchema } from "../formats/read-format.ts";
import { bytes, integer, time } from "./units.ts";

/** A model's entry with its numbers as numbers, times in milliseconds. */
export type ModelConfig = LocalModelConfig | UpstreamModelConfig | ProgramModelConfig | EngineModelConfig;
export type LocalModelConfig = Parsed<LocalModel>;
export type UpstreamModelConfig = Parsed<UpstreamModel>;
export type ProgramModelConfig = Parsed<ProgramModel>;
export type EngineModelConfig = Parsed<EngineModel>;

/** What may be written as a number or a text is a number. */
type Parsed<T> = {
  readonly [K in keyof T]: number | string extends NonNullable<T[K]>
    ? Exclude<T[K], string>
    : K extends "timeouts"
      ? { readonly [N in keyof UpstreamTimeouts]: number }
      : T[K];
} & { readonly aliases: readonly string[] };

export const wireSchema: z.ZodType<WireName, WireName> = z.enum(["lean", "openai"]).describe("The form of the answers");

const urlError = "expected the base URL of a server, such as http://localhost:11434/v1, or a list of them";
const baseUrl = z.url({ protocol: /^https?$/, error: urlError });
const texts = z.record(z.string(), z.string());
/** The name of a format or a description of one. */
const toolFormat = z
  .union([z.string().min(1), z.record(z.string(), z.unknown())], { error: "expected a name or a description" })
  .superRefine((value, context) => {
    if (typeof value === "string") return;
    const { issues = [] } = formatSchema.safeParse(value).error ?? {};
    for (const { path, message } of issues) context.addIssue({ code: "custom", path: [...path], message });
  })
  .optional();

const answer = {
  name: z.string().min(1).optional().describe("The name that clients use"),
  aliases: z.array(z.string().min(1)).default([]).describe("Further names for it"),
  wire: wireSchema.optional(),
  systemFingerprint: z.string().optional().describe("What system_fingerprint says (default null)"),
  serviceTier: z
    .enum(["auto", "default", "flex", "scale", "priority"])
    .optional()
    .describe("Form openai: what service_tier says where the source says nothing (default default)"),
  logprobsKey: z
    .boolean()
    .optional()
    .describe("Form openai: whether choices have logprobs when nobody asked for them (default: by the model's name)"),
  reasoningFields: z
    .array(z.enum(["reasoning_content", "reasoning"]))
    .optional()
    .describe("Names of the members that carry reasoning (default reasoning_content)"),
};

const local = z
  .strictObject({
    kind: z.literal("local"),
    path: z.string().min(1).describe("A GGUF file, or hf:owner/repo[:quant]"),
    ...answer,
    contextSize: integer(1).optional().describe("Tokens of prompt and answer together, for each slot"),
    slots: integer(1).optional().describe("Answers that are generated at once (default 4)"),
    threads: integer(1).optional().describe("CPU threads (default: all cores but one)"),
    gpu: z
      .union([z.enum(["auto", "off"]), integer(0)], { error: "expected auto, off or a number of layers" })
      .optional()
      .describe("Layers on a GPU: as many as fit (auto), none (off), or so many (default auto)"),
    batchSize: integer(1).optional().describe("Tokens that are evaluated in one pass at most (default 512)"),
    chatTemplate: z
      .string()
      .min(1)
      .optional()
      .describe("A file with a Jinja chat template, in place of the model's own"),
    toolFormat: toolFormat.describe("How the model writes tool calls and reasoning (default: found)"),
    queueLimit: integer(0)
      .optional()
      .describe("Answers that may wait for a slot; more are refused with 429 (default 64)"),
    modelsFolder: z.string().min(1).optional().describe("Where hf: models are kept"),
    defaults: z
      .strictObject({
        temperature: z.number().min(0).optional(),
        topP: z.number().min(0).max(1).optional(),
        topK: z.int().min(0).optional(),
        minP: z.number().min(0).max(1).optional(),
        repeatPenalty: z.number().min(0).optional(),
        frequencyPenalty: z.number().min(-2).max(2).optional(),
        presencePenalty: z.number().min(-2).max(2).optional(),
        seed: z.int().optional(),
        maxTokens: z.int().min(1).optional(),
      })
      .optional()
      .describe("Used where a request does not say"),
  })
  .describe("A GGUF file, run by llama.cpp");

const upstream = z
  .strictObject({
    kind: z.literal("upstream"),
    url: z
      .union([baseUrl, z.array(baseUrl).min(1)], { error: urlError })
      .describe("Its base URL; several serve the same models"),
    ...answer,
    key: z.string().min(1).optional().describe("The key it wants, such as ${OPENAI_API_KEY}"),
    headers: texts.optional().describe("Sent with every request"),
    models: texts.optional().describe("Name for clients: the upstream's name (default: all that it lists)"),
    fallbacks: z
      .record(z.string(), z.array(z.string().min(1)))
      .optional()
      .describe("Model: those that stand in for it"),
    requests: z
      .strictObject({
        maxTokensMember: z.enum(["max_tokens", "max_completion_tokens"]).optional(),
        instructionRole: z.enum(["system", "developer"]).optional(),
        legacyFunctions: z.boolean().optional().describe("It only knows the legacy functions"),
        drop: z.array(z.string()).optional().describe("Members that it refuses"),
        rename: texts.optional().describe("Members that it calls otherwise"),
        add: z.record(z.string(), z.unknown()).optional().describe("Members that are added to every request"),
      })
      .optional()
      .describe("How its requests must look, where that differs from what clients send"),
    singleChoice: z.boolean().optional().describe("It takes only n: 1, so several choices are several calls"),
    toolFormat: toolFormat.describe("How the models write calls and reasoning that it leaves in the text, or auto"),
    timeouts: z
      .strictObject({
        connect: time.optional().describe("Until the connection stands (default 10s)"),
        firstEvent: time.optional().describe("Until the first event (default 10m)"),
        idle: time.optional().describe("Of silence after that (default 2m)"),
      })
      .optional(),
    retries: integer(0).optional().describe("Further attempts before the first event (default 2)"),
    tls: z
      .strictObject({
        ca: z.string().optional().describe("A PEM file"),
        cert: z.string().optional().describe("A PEM file"),
        key: z.string().optional().describe("A PEM file"),
        serverName: z.string().optional(),
        verify: z.boolean().optional().describe("False accepts any certificate"),
      })
      .optional(),
    answerLimit: bytes
      .optional()
      .describe("The longest event, and the longest answer without a stream (default 16MiB)"),
    passExtra: z
      .union([z.boolean(), z.array(z.string())])
      .optional()
      .describe("Pass on what it adds to OpenAI's answers: all, or the members named (default: nothing)"),
  })
  .describe("A server that speaks OpenAI's API, or nearly");

/** A program is a path in a file; in code, it may be the program itself. */
export const programSchema: z.ZodType<unknown> = z.custom(
  (value) => value !== undefined && value !== null && value !== "",
  {
    error: "expected the path of a module",
  },
);

const programModel = z
  .strictObject({
    kind: z.literal("program"),
    program: programSchema,
    ...answer,
    watch: z.boolean().optional().describe("Load it anew when its file changes"),
    threads: integer(1).optional().describe("Threads for a synchronous program"),
    toolFormat: toolFormat.describe("How it writes calls and reasoning that it leaves in its text"),
  })
  .describe("A module of your own");

const engineModel = z.strictObject({
  kind: z.literal("engine"),
  engine: z.custom<EngineModel["engine"]>(
    (value) => typeof value === "object" && value !== null && "generate" in value,
    { error: "expected an Engine" },
  ),
  ...answer,
});

/** One entry of `models`. */
export const modelSchema: z.ZodType<ModelConfig> = z.discriminatedUnion("kind", [
  local,
  upstream,
  programModel,
  engineModel,
]);
