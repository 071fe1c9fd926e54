import { z } from "zod";
import type { JsonSchema } from "../../core/message.ts";
import type { OutputConstraint } from "../../core/request.ts";
import type { RequestDraft } from "./draft.ts";
import { extension, honoured } from "./parameter.ts";
import type { Parameter } from "./parameter.ts";
import { checkName } from "./check-name.ts";
import { invalidValue, missingParameter, unsupportedParameter } from "./refusals.ts";
import { anyObject, expecting, strings } from "./shapes.ts";
import { checkSchema } from "./check-schema.ts";

const responseFormat = z.discriminatedUnion(
  "type",
  [
    z.object({ type: z.literal("text") }),
    z.object({ type: z.literal("json_object"), schema: anyObject().nullish() }),
    z.object({
      type: z.literal("json_schema"),
      json_schema: z.object(
        {
          name: z.string().nullish(),
          description: z.string().nullish(),
          schema: z.union([anyObject(), z.boolean()], expecting("an object")).nullish(),
          strict: z.boolean().nullish(),
        },
        expecting("an object"),
      ),
    }),
  ],
  expecting("an object"),
);

const schemaOrText = z.union([anyObject(), z.string(), z.boolean()], expecting("one of an object or string"));

/** What the answer must be: OpenAI's way, and those of llama.cpp and vLLM. At most one of them binds an answer. */
export const outputParameters: readonly Parameter[] = [
  honoured(
    "response_format",
    {
      note: 'As OpenAI\'s; on completions an extension. Also llama.cpp\'s `{"type":"json_object","schema":{…}}`.',
      shape: responseFormat,
    },
    readResponseFormat,
  ),
  extension("grammar", { note: "GBNF, as llama.cpp's.", shape: z.string() }, (value, draft) => {
    addGrammar("grammar", value, draft);
  }),
  extension("json_schema", { note: "llama.cpp's: a JSON Schema.", shape: schemaOrText }, (value, draft) => {
    addSchema("json_schema", value, draft);
  }),
  extension("guided_json", { note: "vLLM's: a JSON Schema, or its text.", shape: schemaOrText }, (value, draft) => {
    addSchema("guided_json", value, draft);
  }),
  extension("guided_regex", { note: "vLLM's.", shape: z.string() }, (value, draft) => {
    add("guided_regex", { type: "regex", pattern: value, path: "guided_regex" }, draft);
  }),
  extension("regex", { note: "SGLang's name for `guided_regex`.", shape: z.string() }, (value, draft) => {
    add("regex", { type: "regex", pattern: value, path: "regex" }, draft);
  }),
  extension("ebnf", { note: "SGLang's name for `grammar`.", shape: z.string() }, (value, draft) => {
    addGrammar("ebnf", value, draft);
  }),
  extension("guided_choice", { note: "vLLM's: one of these texts.", shape: strings(200_000) }, (value, draft) => {
    addChoice("guided_choice", value, draft);
  }),
  extension("guided_grammar", { note: "vLLM's; GBNF.", shape: z.string() }, (value, draft) => {
    addGrammar("guided_grammar", value, draft);
  }),
  extension(
    "structured_outputs",
    {
      note: "vLLM's: one of `json`, `regex`, `choice`, `grammar`, `json_object`.",
      shape: z.object(
        {
          json: schemaOrText.nullish(),
          regex: z.string().nullish(),
          choice: strings(200_000).nullish(),
          grammar: z.string().nullish(),
          json_object: z.boolean().nullish(),
          structural_tag: z.unknown().optional(),
        },
        expecting("an object"),
      ),
    },
    readStructuredOutputs,
  ),
];

function readResponseFormat(format: z.infer<typeof responseFormat>, draft: RequestDraft): void {
  switch (format.type) {
    case "text":
      return;
    case "json_object":
      if (format.schema) addSchema("response_format", format.schema, draft, "response_format.schema");
      else add("response_format", { type: "json-object" }, draft);
      return;
    case "json_schema":
      readJsonSchema(format.json_schema, draft);
  }
}

function readJsonSchema(
  {
    name,
    description,
    schema,
    strict,
  }: Extract<z.infer<typeof responseFormat>, { type: "json_schema" }>["json_schema"],
  draft: RequestDraft,
): void {
  const path = "response_format.json_schema";
  if (schema === undefined || schema === null) throw missingParameter(`${path}.schema`);
  if (draft.profile.judgesAsVendor) {
    if (name === undefined || name === null) throw missingParameter(`${path}.name`);
    checkName(`${path}.name`, name);
    checkSchema(schema, strict ?? false, {
      subject: `response_format '${name}'`,
      param: `${path}.schema`,
      code: "invalid_json_schema",
    });
  }
  const constraint: OutputConstraint = {
    type: "json-schema",
    name: name ?? "response",
    ...(typeof description === "string" && { description }),
    schema,
    strict: strict ?? false,
    path: `${path}.schema`,
  };
  add("response_format", constraint, draft);
}

function readStructuredOutputs(
  value: {
    readonly json?: JsonSchema | string | null | undefined;
    readonly regex?: string | null | undefined;
    readonly choice?: readonly string[] | null | undefined;
    readonly grammar?: string | null | undefined;
    readonly json_object?: boolean | null | undefined;
    readonly structural_tag?: unknown;
  },
  draft: RequestDraft,
): void {
  const parameter = "structured_outputs";
  const { json, regex, choice, grammar, json_object: jsonObject, structural_tag: tag } = value;
  if (json !== undefined && json !== null) addSchema(`${parameter}.json`, json, draft);
  if (typeof regex === "string") {
    add(`${parameter}.regex`, { type: "regex", pattern: regex, path: `${parameter}.regex` }, draft);
  }
  if (choice) addChoice(`${parameter}.choice`, choice, draft);
  if (typeof grammar === "string") addGrammar(`${parameter}.grammar`, grammar, draft);
  if (jsonObject) add(`${parameter}.json_object`, { type: "json-object" }, draft);
  if (tag !== undefined && tag !== null) throw unsupportedParameter(`${parameter}.structural_tag`);
}

function addSchema(
  parameter: string,
  schema: JsonSchema | string,
  draft: RequestDraft,
  path: string = parameter,
): void {
  const parsed = typeof schema === "string" ? parsedSchema(schema, path) : schema;
  add(parameter, { type: "json-schema", name: "response", schema: parsed, strict: false, path }, draft);
}

function parsedSchema(text: string, path: string): JsonSchema {
  try {
    const schema: unknown = JSON.parse(text);
    if (typeof schema === "boolean" || (typeof schema === "object" && schema !== null && !Array.isArray(schema))) {
      return schema as JsonSchema;
    }
  } catch {
    // Told below, together with JSON that is no schema.
  }
  throw invalidValue(path, "expected a JSON Schema.", "invalid_json_schema");
}

function addChoice(parameter: string, options: readonly string[], draft: RequestDraft): void {
  if (options.length === 0) throw invalidValue(parameter, "there must be something to choose from.");
  add(parameter, { type: "choice", options, path: parameter }, draft);
}

/** An empty grammar counts as absent: llama.cpp's own user interface sends it. */
function addGrammar(parameter: string, gbnf: string, draft: RequestDraft): void {
  if (gbnf.trim() !== "") add(parameter, { type: "grammar", gbnf, path: parameter }, draft);
}

function add(parameter: string, constraint: OutputConstraint, draft: RequestDraft): void {
  const [other] = draft.outputs;
  if (other) throw invalidValue(parameter, `it cannot be combined with '${other.parameter}'.`);
  draft.outputs.push({ parameter, constraint });
}
