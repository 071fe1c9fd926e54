import { z } from "zod";
import { mostTools } from "./size-limits.ts";
import { anyObject, expecting, list } from "./shapes.ts";

/** The shapes of tools and of the choice between them. Source: the specification's ChatCompletionTool and relatives. */

const anObject = expecting("an object");

const functionObject = z.object(
  {
    name: z.string().min(1),
    description: z.string().nullish(),
    parameters: anyObject().nullish(),
    strict: z.boolean().nullish(),
  },
  anObject,
);

const customFormat = z.discriminatedUnion(
  "type",
  [
    z.object({ type: z.literal("text") }),
    z.object({
      type: z.literal("grammar"),
      grammar: z.object({ definition: z.string(), syntax: z.enum(["lark", "regex"]) }, anObject),
    }),
  ],
  anObject,
);

const tool = z.discriminatedUnion(
  "type",
  [
    z.object({ type: z.literal("function"), function: functionObject }),
    z.object({
      type: z.literal("custom"),
      custom: z.object(
        { name: z.string().min(1), description: z.string().nullish(), format: customFormat.nullish() },
        anObject,
      ),
    }),
  ],
  anObject,
);

export interface RawFunction {
  name: string;
  description?: string | null | undefined;
  parameters?: Record<string, unknown> | null | undefined;
  strict?: boolean | null | undefined;
}

export type RawTool = { type: "function"; function: RawFunction } | { type: "custom"; custom: RawCustomTool };

export interface RawCustomTool {
  name: string;
  description?: string | null | undefined;
  format?: { type: "text" } | { type: "grammar"; grammar: RawInputGrammar } | null | undefined;
}

export interface RawInputGrammar {
  definition: string;
  syntax: "lark" | "regex";
}

export const toolsShape: z.ZodType<RawTool[]> = list(tool, { phrase: "an array of objects", most: mostTools });
export const functionsShape: z.ZodType<RawFunction[]> = list(functionObject, {
  phrase: "an array of objects",
  most: mostTools,
});

const modes = z.enum(["none", "auto", "required"]);
const namedFunction = z.object({ name: z.string() }, anObject);
const functionByName = z.object({ type: z.literal("function"), function: namedFunction });
const customByName = z.object({ type: z.literal("custom"), custom: namedFunction });
const namedTool = z.discriminatedUnion("type", [functionByName, customByName], anObject);
const allowedTools = z.object({
  type: z.literal("allowed_tools"),
  allowed_tools: z.object(
    {
      mode: z.enum(["auto", "required"]),
      tools: list(namedTool, { phrase: "an array of objects", least: 1, most: mostTools }),
    },
    anObject,
  ),
});
const choiceObject = z.discriminatedUnion("type", [allowedTools, functionByName, customByName], anObject);

export type RawNamedTool =
  | { type: "function"; function: { name: string } }
  | { type: "custom"; custom: { name: string } };

export type RawToolChoice =
  | "none"
  | "auto"
  | "required"
  | { type: "allowed_tools"; allowed_tools: { mode: "auto" | "required"; tools: RawNamedTool[] } }
  | RawNamedTool;

export const toolChoiceShape: z.ZodType<RawToolChoice> = z.union(
  [modes, choiceObject],
  expecting("one of a string or object"),
);

export type RawFunctionCall = "none" | "auto" | { name: string };

export const functionCallShape: z.ZodType<RawFunctionCall> = z.union(
  [z.enum(["none", "auto"]), namedFunction],
  expecting("one of a string or object"),
);
