import * as z from "zod";

/*
 * The objects of the answers of Gemini's API. The keys of a shape are in the order of the wire. Sources:
 * https://ai.google.dev/api/generate-content and its pages next to it; @google/genai 2.32; recordings of 2025 and 2026 in
 * crmne/ruby_llm (spec/fixtures/vcr_cassettes) and simonw/llm-gemini (tests/cassettes).
 */

const count = z.int().min(0);
const anything = z.record(z.string(), z.unknown());

/** Tokens by their modality. */
export const geminiModalityCount = z.object({ modality: z.string(), tokenCount: count.optional() });

/** `id` since Gemini 3. */
export const geminiFunctionCall = z.object({
  name: z.string(),
  args: anything.optional(),
  id: z.string().optional().meta({ since: "2025-11" }),
});

export const geminiExecutableCode = z.object({
  language: z.string(),
  code: z.string(),
  id: z.string().optional().meta({ since: "2025-11" }),
});

export const geminiCodeResult = z.object({
  outcome: z.string(),
  output: z.string().optional(),
  id: z.string().optional().meta({ since: "2025-11" }),
});

export const geminiBlob = z.object({ mimeType: z.string(), data: z.string() });

/** A part of an answer: one of its data members, and what may be next to it. */
export const geminiPart = z.object({
  text: z.string().optional(),
  inlineData: geminiBlob.optional(),
  functionCall: geminiFunctionCall.optional(),
  executableCode: geminiExecutableCode.optional(),
  codeExecutionResult: geminiCodeResult.optional(),
  toolCall: anything.optional(),
  toolResponse: anything.optional(),
  thought: z.boolean().optional(),
  /** Base 64. */
  thoughtSignature: z.string().optional(),
});

export const geminiContent = z.object({
  parts: z.array(geminiPart).optional(),
  role: z.string().optional(),
});

const safetyRatings = z.array(anything).optional();

const geminiToken = z.object({ token: z.string(), tokenId: z.int().optional(), logProbability: z.number() });

export const geminiLogprobs = z.object({
  topCandidates: z.array(z.object({ candidates: z.array(geminiToken) })).optional(),
  chosenCandidates: z.array(geminiToken).optional(),
});

const webSource = z.object({ uri: z.string(), title: z.string().optional() });

export const geminiGrounding = z.object({
  searchEntryPoint: anything.optional(),
  groundingChunks: z.array(z.object({ web: webSource.optional() })).optional(),
  groundingSupports: z.array(anything).optional(),
  webSearchQueries: z.array(z.string()).optional(),
});

/** Source: `FinishReason`. */
export const geminiFinishReason = z.enum([
  "STOP",
  "MAX_TOKENS",
  "SAFETY",
  "RECITATION",
  "LANGUAGE",
  "OTHER",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "MALFORMED_FUNCTION_CALL",
  "IMAGE_SAFETY",
  "IMAGE_PROHIBITED_CONTENT",
  "IMAGE_OTHER",
  "IMAGE_RECITATION",
  "NO_IMAGE",
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
  "MISSING_THOUGHT_SIGNATURE",
  "MALFORMED_RESPONSE",
]);

/** The data members of a part, of which it has one. */
export const geminiPartKinds = [
  "text",
  "inlineData",
  "functionCall",
  "executableCode",
  "codeExecutionResult",
  "toolCall",
  "toolResponse",
] as const satisfies readonly (keyof z.infer<typeof geminiPart>)[];

export const geminiCandidate = z.object({
  content: geminiContent.optional(),
  finishReason: z.string().optional(),
  /** Absent where it is 0 in answers of 2024. */
  index: count.optional(),
  finishMessage: z.string().optional(),
  safetyRatings,
  citationMetadata: anything.optional(),
  tokenCount: count.optional(),
  groundingMetadata: geminiGrounding.optional(),
  avgLogprobs: z.number().optional(),
  logprobsResult: geminiLogprobs.optional(),
  urlContextMetadata: anything.optional(),
});

const modalities = z.array(geminiModalityCount).optional();

export const geminiUsage = z.object({
  promptTokenCount: count.optional(),
  candidatesTokenCount: count.optional(),
  totalTokenCount: count.optional(),
  cachedContentTokenCount: count.optional(),
  promptTokensDetails: modalities,
  cacheTokensDetails: modalities,
  candidatesTokensDetails: modalities,
  toolUsePromptTokenCount: count.optional(),
  toolUsePromptTokensDetails: modalities,
  thoughtsTokenCount: count.optional(),
  serviceTier: z.string().optional().meta({ since: "2026-06" }),
});

export const geminiPromptFeedback = z.object({
  blockReason: z.string().optional(),
  blockReasonMessage: z.string().optional(),
  safetyRatings,
});

/** An answer, and each chunk of its stream. Source: `GenerateContentResponse`. */
export const geminiResponse = z.object({
  candidates: z.array(geminiCandidate).optional(),
  promptFeedback: geminiPromptFeedback.optional(),
  usageMetadata: geminiUsage.optional(),
  modelVersion: z.string().optional(),
  responseId: z.string().optional(),
});

/** The names of canonical codes by their numbers in HTTP. Source: googleapis/googleapis, google/rpc/code.proto. */
export const geminiStatuses: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  409: "ABORTED",
  429: "RESOURCE_EXHAUSTED",
  499: "CANCELLED",
  500: "INTERNAL",
  501: "UNIMPLEMENTED",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

/** The body of an error. In a stream without `alt=sse` it is an item of the list. */
export const geminiError = z.object({
  error: z.object({
    code: z.int(),
    message: z.string(),
    status: z.string(),
    details: z.array(anything).optional(),
  }),
});

/** Source: `Model`. */
export const geminiModel = z.object({
  name: z.string(),
  version: z.string(),
  displayName: z.string(),
  description: z.string().optional(),
  inputTokenLimit: count.optional(),
  outputTokenLimit: count.optional(),
  supportedGenerationMethods: z.array(z.string()),
  temperature: z.number().optional(),
  topP: z.number().optional(),
  topK: z.number().optional(),
  maxTemperature: z.number().optional(),
  thinking: z.boolean().optional(),
});

export const geminiModelList = z.object({ models: z.array(geminiModel), nextPageToken: z.string().optional() });

export const geminiTokenCount = z.object({
  totalTokens: count,
  cachedContentTokenCount: count.optional(),
  promptTokensDetails: modalities,
});

const embedding = z.object({ values: z.array(z.number()) });

export const geminiEmbedding = z.object({ embedding });

export const geminiEmbeddings = z.object({ embeddings: z.array(embedding) });
