import * as z from "zod";
import { anyObject, list, maxMessages, maxParts, maxTools } from "../request/shapes.ts";

/*
 * The objects of the requests of Gemini's API, with the names of JSON (`systemInstruction`); `proto-json.ts` also reads those of the
 * protocol buffers (`system_instruction`). `null` counts as absent. `.meta({ proto })` names the type of a member in the errors of Google's
 * parser. Sources: https://ai.google.dev/api/generate-content, https://ai.google.dev/api/caching; @google/genai 2.32.
 */

const text = z.string().nullish();
const flag = z.boolean().nullish();
/** JSON of protocol buffers may have a number as a text. */
const number = (proto: "TYPE_FLOAT" | "TYPE_INT32") =>
  z
    .union([
      z.number(),
      z
        .string()
        .regex(/^-?\d{1,30}(?:\.\d{1,30})?$/)
        .transform(Number),
    ])
    .nullish()
    .meta({ proto });
const float = number("TYPE_FLOAT");
const integer = number("TYPE_INT32");
const object = anyObject().nullish();
/** A `Schema`, the subset of OpenAPI. */
const schema = object.meta({ isGoogleSchema: true });
const texts = list(z.string(), { most: maxTools }).nullish();
const any = z.unknown().optional();
/** Adds what docs/parameters.md says of a member. */
const noted = <Schema extends z.ZodType>(schema: Schema, note: string): Schema =>
  schema.meta({ ...schema.meta(), note });
/** A member that is read and has no effect. */
const accepted = <Schema extends z.ZodType>(schema: Schema): Schema =>
  schema.meta({ ...schema.meta(), treatment: "accepted" });

/** Bytes in base 64. */
const blob = z.object({ mimeType: text, data: text.meta({ proto: "TYPE_BYTES" }), displayName: text });
const fileData = z.object({ mimeType: text, fileUri: text, displayName: text });

/** `args` is missing where the function has no parameters. */
const functionCall = z.object({ id: text, name: text, args: object });

const functionResponse = z.object({
  id: text,
  name: text,
  /** The result in `output`, or an error in `error`; any other object is the result itself. */
  response: object,
  /** Images and files of the result. */
  parts: list(z.object({ inlineData: blob.nullish(), fileData: fileData.nullish() }), { most: maxParts }).nullish(),
  willContinue: flag,
  scheduling: text,
});

export const geminiRequestPart = z.object({
  text,
  inlineData: blob.nullish(),
  fileData: fileData.nullish(),
  functionCall: functionCall.nullish(),
  functionResponse: functionResponse.nullish(),
  executableCode: z.object({ id: text, language: text, code: text }).nullish(),
  codeExecutionResult: z.object({ id: text, outcome: text, output: text }).nullish(),
  toolCall: object,
  toolResponse: object,
  thought: flag,
  thoughtSignature: text.meta({ proto: "TYPE_BYTES" }),
  videoMetadata: object,
  mediaResolution: any,
  mediaProcessing: any,
  partMetadata: object,
});

export const geminiRequestContent = z.object({
  parts: list(geminiRequestPart, { most: maxParts }).nullish(),
  role: text,
});

const functionDeclaration = z.object({
  name: z.string(),
  description: text,
  behavior: text,
  parameters: schema,
  parametersJsonSchema: any,
  response: object,
  responseJsonSchema: any,
});

/** A tool of Google's, with its options. */
const hosted = object;

export const geminiTool = z.object({
  functionDeclarations: list(functionDeclaration, { most: maxTools }).nullish(),
  googleSearch: hosted,
  googleSearchRetrieval: hosted,
  urlContext: hosted,
  codeExecution: hosted,
  fileSearch: hosted,
  googleMaps: hosted,
  computerUse: hosted,
  mcpServers: any,
});

const toolConfig = z.object({
  functionCallingConfig: z.object({ mode: text, allowedFunctionNames: texts }).nullish(),
  retrievalConfig: object,
  includeServerSideToolInvocations: flag,
});

/** The options of an answer. docs/parameters.md lists them. */
export const geminiGenerationConfig = z.object({
  stopSequences: texts,
  responseMimeType: noted(text, "`application/json`, `text/plain`, or `text/x.enum` with a schema of texts"),
  responseSchema: noted(schema, "Google's subset of OpenAPI; with `propertyOrdering`"),
  responseJsonSchema: noted(any, "any JSON Schema"),
  candidateCount: integer,
  maxOutputTokens: integer,
  temperature: float,
  topP: float,
  topK: float,
  seed: integer,
  presencePenalty: float,
  frequencyPenalty: float,
  responseLogprobs: flag,
  logprobs: noted(integer, "0 to 20 alternatives for each token; with `responseLogprobs`"),
  thinkingConfig: noted(
    z.object({ includeThoughts: flag, thinkingBudget: integer, thinkingLevel: text }).nullish(),
    "`thinkingBudget` 0 switches reasoning off, -1 leaves it to the model; thoughts are shown unless `includeThoughts` is false, in profile `exact` only if it is true",
  ),
  responseModalities: noted(texts, "`TEXT` only"),
  enableEnhancedCivicAnswers: accepted(flag),
  speechConfig: accepted(object),
  imageConfig: accepted(object),
  mediaResolution: accepted(text),
  audioTimestamp: accepted(flag),
  responseFormat: accepted(any),
  audioTranscriptionConfig: accepted(object),
  translationConfig: accepted(object),
});

/** The body of `:generateContent` and `:streamGenerateContent`. */
export const geminiRequest = z.object({
  contents: noted(
    list(geminiRequestContent, { most: maxMessages }).nullish(),
    "texts, `inlineData`, calls and their results, thoughts, code and its output; `fileData` by `http` and `data` URLs",
  ),
  systemInstruction: geminiRequestContent.nullish(),
  tools: noted(
    list(geminiTool, { most: maxTools }).nullish(),
    "functions; `googleSearch`, `urlContext` and `codeExecution` by [hosted tools](hosted-tools.md)",
  ),
  toolConfig: noted(
    toolConfig.nullish(),
    "modes `AUTO`, `ANY`, `NONE` and `VALIDATED`, and the names that are allowed",
  ),
  generationConfig: noted(geminiGenerationConfig.nullish(), "see below"),
  safetySettings: accepted(list(anyObject(), { most: maxTools }).nullish()),
  cachedContent: text.meta({ treatment: "refused", note: "prompts are cached without it" }),
  serviceTier: accepted(text),
  store: accepted(flag),
  labels: accepted(object),
  model: noted(text, "in the path"),
});

/** The body of `:countTokens`. */
export const geminiCountRequest = z.object({
  contents: list(geminiRequestContent, { most: maxMessages }).nullish(),
  generateContentRequest: geminiRequest.nullish(),
  model: text,
});

/** The body of `:embedContent`. */
export const geminiEmbedRequest = z.object({
  model: text,
  content: geminiRequestContent.nullish(),
  taskType: text,
  title: text,
  outputDimensionality: integer,
  embedContentConfig: z.object({ outputDimensionality: integer, taskType: text, title: text }).nullish(),
});

/** The body of `:batchEmbedContents`. */
export const geminiBatchEmbedRequest = z.object({
  model: text,
  requests: list(geminiEmbedRequest, { most: 2048 }).nullish(),
});
