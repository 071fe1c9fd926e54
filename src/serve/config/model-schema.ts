import * as z from "zod";
import type { Program } from "../../wire/apis/chat/program.ts";
import type { Engine } from "../../wire/core/engine.ts";
import { expected, flag, integer, settings } from "./shapes.ts";
import type { Parsed, Written } from "./shapes.ts";
import { answerSettings, toolFormat } from "./answer-schema.ts";
import { localModel } from "./local-schema.ts";
import { upstreamModel } from "./upstream-schema.ts";

/** A program is a path in a file; in code, it may be the program itself. */
export const programSchema: z.ZodType<string | Program | object, string | Program | object> = z.custom<
  string | Program | object
>(
  (value) =>
    (typeof value === "string" && value !== "") ||
    typeof value === "function" ||
    (typeof value === "object" && value !== null && "doStream" in value),
  { error: expected("a file such as ./program.ts; in code also a function or an AI SDK language model") },
);

const programModel = settings(
  {
    kind: z.literal("program"),
    program: programSchema,
    ...answerSettings,
    watch: flag().optional().describe("Reload the program when its file changes"),
    threads: integer(1).optional().describe("Threads for a synchronous program"),
    showErrors: flag()
      .optional()
      .describe("Tell clients the words of any exception (default: only of those that are meant for them)"),
    toolFormat: toolFormat.describe("How it writes calls and reasoning that it leaves in its text"),
  },
  "a mapping such as { kind: program, program: ./program.ts }",
).describe("A module of your own");

export const engineSchema: z.ZodType<Engine, Engine> = z.custom<Engine>(
  (value) => typeof value === "object" && value !== null && "generate" in value,
  { error: expected("an object with the methods of an Engine") },
);

const engineModel = settings(
  {
    kind: z.literal("engine"),
    engine: engineSchema,
    ...answerSettings,
  },
  'an object such as { kind: "engine", engine }',
);

const kindsOfModels = z.discriminatedUnion("kind", [localModel, upstreamModel, programModel, engineModel], {
  error: ({ input }) => kindError(input),
});

/** A GGUF file, run by llama.cpp. */
export type LocalModel = Written<typeof localModel>;
/** A server with an OpenAI API, or nearly one. */
export type UpstreamModel = Written<typeof upstreamModel>;
/** The user's own code: a file; in code also the program itself, a model of the AI SDK, or an engine. */
export type ProgramModel = Written<typeof programModel>;
/** An engine made by the caller: in code only. */
export type EngineModel = Written<typeof engineModel>;
export type ModelEntry = LocalModel | UpstreamModel | ProgramModel | EngineModel;

/** The same with numbers as numbers, times in milliseconds, sizes in bytes. */
export type LocalModelConfig = Parsed<typeof localModel>;
export type UpstreamModelConfig = Parsed<typeof upstreamModel>;
export type ModelConfig = LocalModelConfig | UpstreamModelConfig | ProgramModelConfig | EngineModelConfig;
export type ProgramModelConfig = Parsed<typeof programModel>;
type EngineModelConfig = Parsed<typeof engineModel>;

export const modelKinds: readonly ModelEntry["kind"][] = ["local", "upstream", "program", "engine"];
/** The names of the settings of each kind of model. */
export const settingsOfKinds: Readonly<Record<ModelEntry["kind"], ReadonlySet<string>>> = {
  local: new Set(Object.keys(localModel.shape)),
  upstream: new Set(Object.keys(upstreamModel.shape)),
  program: new Set(Object.keys(programModel.shape)),
  engine: new Set(Object.keys(engineModel.shape)),
};

/** One entry of `models`. */
export const modelSchema: z.ZodType<ModelConfig, ModelEntry> = kindsOfModels;

const kinds = "local, upstream or program";

function kindError(entry: unknown): string {
  if (typeof entry !== "object" || entry === null || Array.isArray(entry))
    return `expected a target such as model.gguf or http://localhost:11434/v1, or a mapping with a kind: ${kinds}`;
  return "kind" in entry ? `expected ${kinds}` : `is missing; expected ${kinds}`;
}
