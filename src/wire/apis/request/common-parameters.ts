import {
  arrayTooLong,
  checkTotalLength,
  emptyArray,
  invalidType,
  invalidValue,
  missingParameter,
  numberAbove,
  numberBelow,
  unsupportedParameter,
  valuePhrase,
} from "./refusals.ts";
import * as z from "zod";
import { missingModel } from "../failures.ts";
import type { RequestDraft } from "./draft.ts";
import {
  acceptedParameter,
  extensionParameter,
  type RequestParameter,
  setDraftMember,
  setMember,
  supportedParameter,
} from "./parameter.ts";
import {
  anyObject,
  decimalShape,
  expecting,
  integerShape,
  stringOrStrings,
  strings,
  wideIntegerShape,
} from "./shapes.ts";
import { isObject } from "../../core/json.ts";
import type { JsonSchema } from "../../core/message.ts";
import type { OutputConstraint } from "../../core/request.ts";
import { checkName, checkSchema } from "./check-schema.ts";

/** OpenAI's parameters that chat and completions have in common. */
export const commonParameters: readonly RequestParameter[] = [
  supportedParameter("model", { shape: z.string(), required: true }, (value, { request }) => {
    if (value === "") throw missingModel();
    request.model = value;
  }),
  supportedParameter("stream", { shape: z.boolean() }, setMember("request", "stream")),
  supportedParameter(
    "stream_options",
    {
      note: "`include_usage`, `include_obfuscation`, and vLLM's `continuous_usage_stats`, which together with `include_usage` adds the current usage to every chunk. Requires `stream: true`.",
      shape: z.object(
        {
          include_usage: z.boolean().nullish(),
          include_obfuscation: z.boolean().nullish(),
          continuous_usage_stats: z.boolean().nullish(),
        },
        expecting("an object"),
      ),
    },
    setDraftMember("streamOptions"),
  ),
  supportedParameter("n", { note: "1 to 128.", shape: integerShape(1, 128) }, setMember("request", "n")),
  supportedParameter(
    "stop",
    {
      note: "A string or a list. OpenAI allows up to 4 strings, profile `lean` up to 1,000, with at most 65,536 characters in total. Empty strings are ignored.",
      shape: stringOrStrings(1000),
    },
    readStop,
  ),
  supportedParameter(
    "temperature",
    { note: "0 to 2.", shape: decimalShape(0, 2) },
    setMember("sampling", "temperature"),
  ),
  supportedParameter("top_p", { note: "0 to 1.", shape: decimalShape(0, 1) }, setMember("sampling", "topP")),
  supportedParameter(
    "frequency_penalty",
    { note: "-2 to 2.", shape: decimalShape(-2, 2) },
    setMember("sampling", "frequencyPenalty"),
  ),
  supportedParameter(
    "presence_penalty",
    { note: "-2 to 2.", shape: decimalShape(-2, 2) },
    setMember("sampling", "presencePenalty"),
  ),
  supportedParameter(
    "logit_bias",
    {
      note: 'Biases of -100 to 100 by token id of the model that answers (`/tokenize` returns the ids); fractions are allowed. Profile `lean` also accepts texts, each of whose tokens gets the bias, and llama.cpp\'s list: `[[15043, 1.5], [" Hello", -1], [42, false]]`, where `false` bans the token.',
      shape: z.unknown(),
    },
    readLogitBias,
  ),
  supportedParameter(
    "seed",
    {
      note: "The same request gives the same answer if the local model, its build and its settings are the same and no other request runs at the same time.",
      shape: wideIntegerShape(),
    },
    setMember("sampling", "seed"),
  ),
  acceptedParameter("user", { note: "No effect.", shape: z.string() }),
];

function readStop(value: string | string[], draft: RequestDraft): void {
  if (draft.profile.judgesAsVendor && Array.isArray(value)) {
    if (value.length === 0) throw emptyArray("stop");
    if (value.length > 4) throw arrayTooLong("stop", 4, value.length);
  }
  const strings = (Array.isArray(value) ? value : [value]).filter((text) => text !== "");
  checkTotalLength("stop", strings);
  if (strings.length > 0) draft.limits.stop = strings;
}

/** Each text is tokenized before the next decode step. */
const maxBiasTexts = 1000;

/**
 * Reads `logit_bias`: OpenAI's object by token id; in profile `lean` also by text, and llama.cpp's list of pairs (README of its server,
 * `logit_bias`), where `false` bans. Throws `FailureError`.
 */
function readLogitBias(value: unknown, draft: RequestDraft): void {
  const strict = draft.profile.judgesAsVendor;
  const ids: Record<string, number> = {};
  const texts: { text: string; bias: number }[] = [];
  const add = (token: string, isText: boolean, amount: unknown, path: string): void => {
    const bias = biasOf(amount, path, !strict);
    if (isText) texts.push({ text: token, bias });
    else ids[token] = bias;
  };
  if (isObject(value)) {
    for (const [token, amount] of Object.entries(value)) {
      const isText = !/^\d+$/.test(token);
      if (isText && (strict || token === ""))
        throw invalidValue("logit_bias", `'${token}' is not a token id.`, "invalid_value");
      add(token, isText, amount, `logit_bias.${token}`);
    }
  } else if (Array.isArray(value) && !strict) {
    for (const [at, pair] of value.entries()) {
      const path = `logit_bias[${at}]`;
      if (!Array.isArray(pair) || pair.length !== 2) throw invalidType(path, "an array of two", valuePhrase(pair));
      const [token, amount] = pair as readonly unknown[];
      const isId = Number.isSafeInteger(token) && Number(token) >= 0;
      if (!isId && (typeof token !== "string" || token === ""))
        throw invalidType(`${path}[0]`, "one of a token id or a string", valuePhrase(token));
      add(String(token), !isId, amount, `${path}[1]`);
    }
  } else throw invalidType("logit_bias", "an object", valuePhrase(value));
  if (texts.length > maxBiasTexts) throw arrayTooLong("logit_bias", maxBiasTexts, texts.length);
  checkTotalLength(
    "logit_bias",
    texts.map(({ text }) => text),
  );
  if (Object.keys(ids).length > 0) draft.sampling.logitBias = ids;
  if (texts.length > 0) draft.sampling.textBias = texts;
}

function biasOf(amount: unknown, path: string, takesFalse: boolean): number {
  if (amount === false && takesFalse) return -100;
  if (typeof amount !== "number") throw invalidType(path, "a decimal", valuePhrase(amount));
  if (amount < -100) throw numberBelow(path, "decimal", -100, amount);
  if (amount > 100) throw numberAbove(path, "decimal", 100, amount);
  return amount;
}

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

const structuredOutputs = z.object(
  {
    json: schemaOrText.nullish(),
    regex: z.string().nullish(),
    choice: strings(200_000).nullish(),
    grammar: z.string().nullish(),
    json_object: z.boolean().nullish(),
    structural_tag: z.unknown().optional(),
  },
  expecting("an object"),
);

/** Parameters that constrain the answer: OpenAI's, llama.cpp's, vLLM's and SGLang's. A request may have one of them. */
export const outputParameters: readonly RequestParameter[] = [
  supportedParameter(
    "response_format",
    {
      note: 'As in OpenAI\'s API; an extension of legacy completions. llama.cpp\'s `{"type":"json_object","schema":{…}}` is supported too.',
      shape: responseFormat,
    },
    readResponseFormat,
  ),
  extensionParameter("grammar", { note: "llama.cpp: a grammar in GBNF.", shape: z.string() }, (value, draft) => {
    addGrammar("grammar", value, draft);
  }),
  extensionParameter("json_schema", { note: "llama.cpp: a JSON Schema.", shape: schemaOrText }, (value, draft) => {
    addSchema("json_schema", value, draft);
  }),
  extensionParameter(
    "guided_json",
    { note: "vLLM: a JSON Schema as an object or as a string.", shape: schemaOrText },
    (value, draft) => {
      addSchema("guided_json", value, draft);
    },
  ),
  extensionParameter("guided_regex", { note: "vLLM: a regular expression.", shape: z.string() }, (value, draft) => {
    add("guided_regex", { type: "regex", pattern: value, path: "guided_regex" }, draft);
  }),
  extensionParameter("regex", { note: "SGLang: the same as `guided_regex`.", shape: z.string() }, (value, draft) => {
    add("regex", { type: "regex", pattern: value, path: "regex" }, draft);
  }),
  extensionParameter("ebnf", { note: "SGLang: the same as `grammar`.", shape: z.string() }, (value, draft) => {
    addGrammar("ebnf", value, draft);
  }),
  extensionParameter(
    "guided_choice",
    { note: "vLLM: the answer is one of these strings.", shape: strings(200_000) },
    (value, draft) => {
      addChoice("guided_choice", value, draft);
    },
  ),
  extensionParameter("guided_grammar", { note: "vLLM: the same as `grammar`.", shape: z.string() }, (value, draft) => {
    addGrammar("guided_grammar", value, draft);
  }),
  extensionParameter(
    "structured_outputs",
    {
      note: "vLLM: an object with one of `json`, `regex`, `choice`, `grammar`, `json_object`.",
      shape: structuredOutputs,
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

function readStructuredOutputs(value: z.infer<typeof structuredOutputs>, draft: RequestDraft): void {
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
    // Handled below, as JSON that is not a schema.
  }
  throw invalidValue(path, "expected a JSON Schema.", "invalid_json_schema");
}

function addChoice(parameter: string, options: readonly string[], draft: RequestDraft): void {
  if (options.length === 0) throw invalidValue(parameter, "there must be something to choose from.");
  add(parameter, { type: "choice", options, path: parameter }, draft);
}

/** An empty grammar counts as absent: llama.cpp's user interface sends it. */
function addGrammar(parameter: string, gbnf: string, draft: RequestDraft): void {
  if (gbnf.trim() !== "") add(parameter, { type: "grammar", gbnf, path: parameter }, draft);
}

function add(parameter: string, constraint: OutputConstraint, draft: RequestDraft): void {
  const [other] = draft.outputs;
  if (other) throw invalidValue(parameter, `it cannot be combined with '${other.parameter}'.`);
  draft.outputs.push({ parameter, constraint });
}
