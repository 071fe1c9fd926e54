import { z } from "zod";
import { ConfigError } from "./config-error.ts";
import type { ConfigProblem } from "./config-error.ts";
import type {
  EngineModel,
  LocalModel,
  LogLevel,
  ModelEntry,
  ProgramModel,
  TruewireConfig,
  UpstreamModel,
  WireName,
} from "./config.ts";
import { modelOfTarget } from "./target.ts";

/** A configuration that was read and found right: times in milliseconds, sizes in bytes, defaults filled in. */
export interface Config {
  readonly host: string;
  readonly port: number;
  readonly apiKey: readonly string[];
  readonly corsOrigin: readonly string[];
  readonly wire: WireName;
  readonly hold: number;
  readonly keepAlive: number;
  readonly grace: number;
  readonly bodyLimit: number;
  readonly headerTimeout: number;
  readonly requestTimeout: number;
  readonly idleTimeout: number;
  readonly logLevel: LogLevel;
  readonly logStream?: string | undefined;
  readonly models: readonly ModelConfig[];
}

/** A model's entry with its numbers as numbers, times in milliseconds. */
export type ModelConfig = LocalModelConfig | UpstreamModelConfig | ProgramModelConfig | EngineModelConfig;
export type LocalModelConfig = Parsed<LocalModel>;
export type UpstreamModelConfig = Parsed<UpstreamModel>;
export type ProgramModelConfig = Parsed<ProgramModel>;
export type EngineModelConfig = Parsed<EngineModel>;

/** What may be written as a number or a text is a number. */
type Parsed<T> = {
  readonly [K in keyof T]: number | string extends NonNullable<T[K]> ? Exclude<T[K], string> : T[K];
} & { readonly aliases: readonly string[] };

/** Checks a configuration given as an object. Throws `ConfigError` with every problem that it has. */
export function parseConfig(value: TruewireConfig): Config {
  const result = server.safeParse(withTargets(value));
  if (result.success) return result.data;
  throw new ConfigError(result.error.issues.flatMap(problemsOf));
}

/** The JSON schema of `truewire.yaml`, for editors. */
export function configJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(server, {
    io: "input",
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      // In a file, a program is a path, an engine cannot be, and a target's text stands for a model.
      if (zodSchema === program) Object.assign(jsonSchema, { type: "string" });
      if (zodSchema !== model) return;
      const kinds = jsonSchema.oneOf?.filter((kind) => !("engine" in (kind.properties ?? {})));
      delete jsonSchema.oneOf;
      jsonSchema.anyOf = [{ type: "string", description: "A target of `truewire serve`" }, ...(kinds ?? [])];
    },
  });
  return { ...schema, title: "truewire.yaml" } as Record<string, unknown>;
}

const factors: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const units: Readonly<Record<string, number>> = {
  "": 1,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
};

function duration(standard: string, description: string): z.ZodType<number, number | string | undefined> {
  return z
    .union([z.number().nonnegative(), z.string().regex(/^\d+(\.\d+)?\s*(ms|s|m|h)?$/)], {
      error: "expected a time, such as 500ms, 10s or 2m",
    })
    .default(standard)
    .transform((value) => {
      const [, number = "0", , unit = "s"] = /^(\d+(\.\d+)?)\s*(\w+)?$/.exec(String(value)) ?? [];
      // The longest that a timer can be set to: about 24 days.
      return Math.min(Number(number) * (factors[unit] ?? 1000), 2 ** 31 - 1);
    })
    .describe(`${description} (default ${standard})`);
}

function size(standard: string, description: string): z.ZodType<number, number | string | undefined> {
  return z
    .union([z.int().nonnegative(), z.string().regex(/^\d+(\.\d+)?\s*([kmg]i?b)?$/i)], {
      error: "expected a size, such as 1048576, 512KiB or 32MiB",
    })
    .default(standard)
    .transform((value) => {
      const [, number = "0", , unit = ""] = /^(\d+(\.\d+)?)\s*(\w+)?$/.exec(String(value)) ?? [];
      return Math.floor(Number(number) * (units[unit.toLowerCase()] ?? 1));
    })
    .describe(`${description} (default ${standard})`);
}

/** A whole number; a text of digits counts, since options and `${VARIABLES}` are texts. */
function integer(minimum: number, maximum: number = Number.MAX_SAFE_INTEGER): z.ZodType<number, number | string> {
  const error = `expected a whole number${minimum > 0 ? ` from ${minimum} on` : ""}`;
  return z
    .union([z.int(), z.string().regex(/^\d+$/)], { error })
    .transform(Number)
    .pipe(
      z
        .int()
        .min(minimum, { error })
        .max(maximum, { error: `expected at most ${maximum}` }),
    );
}

function list(description: string): z.ZodType<string[], string | string[] | undefined> {
  return z
    .union([z.string().min(1), z.array(z.string().min(1))], { error: "expected a text or a list of texts" })
    .default([])
    .transform((value) => (typeof value === "string" ? [value] : value))
    .describe(description);
}

const wire = z.enum(["lean", "openai"]).describe("The form of the answers");

const answer = {
  name: z.string().min(1).optional().describe("The name that clients use"),
  aliases: z.array(z.string().min(1)).default([]).describe("Further names for it"),
  wire: wire.optional(),
  systemFingerprint: z.string().optional().describe("What system_fingerprint says (default null)"),
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
    threads: integer(1).optional().describe("CPU threads (default: one for each core)"),
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
    toolFormat: z.string().min(1).optional().describe("How the model writes tool calls and reasoning (default: found)"),
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
      .union([z.url({ protocol: /^https?$/ }), z.array(z.url({ protocol: /^https?$/ })).min(1)], {
        error: "expected the base URL of a server, such as http://localhost:11434/v1, or a list of them",
      })
      .describe("Its base URL; several serve the same models"),
    ...answer,
    key: z.string().min(1).optional().describe("The key it wants, such as ${OPENAI_API_KEY}"),
  })
  .describe("A server that speaks OpenAI's API, or nearly");

const program = z.custom((value) => value !== undefined && value !== null && value !== "", {
  error: "expected the path of a module",
});

const programModel = z
  .strictObject({
    kind: z.literal("program"),
    program,
    ...answer,
    watch: z.boolean().optional().describe("Load it anew when its file changes"),
    threads: integer(1).optional().describe("Threads for a synchronous program"),
    toolFormat: z.string().min(1).optional(),
  })
  .describe("A module of your own");

const engineModel = z.strictObject({
  kind: z.literal("engine"),
  engine: z.custom<Extract<ModelEntry, { kind: "engine" }>["engine"]>(
    (value) => typeof value === "object" && value !== null && "generate" in value,
    { error: "expected an Engine" },
  ),
  ...answer,
});

const model = z.discriminatedUnion("kind", [local, upstream, programModel, engineModel]);

const server = z.strictObject({
  host: z.string().min(1).default("127.0.0.1").describe("Where to listen (default 127.0.0.1)"),
  port: integer(0, 65_535).default(8080).describe("Default 8080; 0 takes any free one"),
  apiKey: list("Keys that clients may use; none: everybody may"),
  corsOrigin: list("Origins of the web pages that may call, or * (default: pages from this machine)"),
  wire: wire.default("lean"),
  hold: duration("10s", "How long a stream's status is held back for its first event"),
  keepAlive: duration(
    "15s",
    "After so long without an event, a stream gets a comment that keeps proxies from cutting it",
  ),
  grace: duration("10s", "How long running answers may take to finish when the server stops"),
  bodyLimit: size("32MiB", "Of a request's body"),
  headerTimeout: duration("20s", "A request's headers must be complete within this time"),
  requestTimeout: duration("5m", "A whole request must have arrived within this time"),
  idleTimeout: duration("75s", "A connection without a request is closed after this time"),
  logLevel: z.enum(["debug", "info", "warn", "error", "silent"]).default("info"),
  logStream: z.string().min(1).optional().describe("A file to which every streamed event is appended"),
  models: z.array(model).default([]).describe("What to serve"),
});

function withTargets(value: TruewireConfig): unknown {
  if (typeof value !== "object" || value === null || !Array.isArray(value.models)) return value;
  const models = value.models as readonly (string | ModelEntry)[];
  return { ...value, models: models.map((entry) => (typeof entry === "string" ? modelOfTarget(entry) : entry)) };
}

function problemsOf(issue: z.core.$ZodIssue): ConfigProblem[] {
  const path = issue.path.filter((part) => typeof part !== "symbol");
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({ path: [...path, key], message: "there is no such setting" }));
  }
  const message = issue.code === "invalid_type" && issue.input === undefined ? "is missing" : issue.message;
  return [{ path, message: message.replace(/^Invalid input: /, "") }];
}
