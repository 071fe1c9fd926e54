import type { GenerationFailure } from "../../core/events.ts";
import { keyIn as bearerIn, openaiErrorFormat, type ApiErrorFormat } from "../api-error-format.ts";
import type { Port, ReadRequest } from "../port.ts";
import { openaiLimitHeaders } from "../rate-limits.ts";
import { errorObject, errorStatus } from "./errors.ts";
import { geminiContentType, geminiForms } from "./form.ts";
import { geminiModels, writeTokenCount } from "./models.ts";
import { geminiCountInSteps, geminiRequestInSteps } from "./request.ts";
import { geminiContext, GeminiStreamWriter, writeGeminiResponse } from "./write.ts";

/** Google's keys (`x-goog-api-key`, `?key=`, or a Bearer token) and errors. */
export const geminiErrorFormat: ApiErrorFormat = {
  keyIn: (header, query) => header("x-goog-api-key")?.trim() || query?.("key")?.trim() || bearerIn(header),
  newRequestId: openaiErrorFormat.newRequestId,
  answerHeaders: (requestId) => ({ "x-request-id": requestId }),
  limitHeaders: openaiLimitHeaders,
  models: geminiModels,
  writeFailure: (failure: GenerationFailure, profile) => ({
    status: errorStatus(failure),
    contentType: geminiContentType,
    body: geminiForms[profile.name].whole(errorObject(failure, profile)),
  }),
};

/** The methods of models, below `/v1beta/models/NAME:`. */
const methods: ReadonlySet<string> = new Set(["generateContent", "countTokens", "embedContent", "batchEmbedContents"]);
const streaming = "streamGenerateContent";

/** The path of the methods, where the routes of the server have them: without the model. */
export const geminiModelsPath = "/v1beta/models";

/**
 * Separates what one of Gemini's paths says about a request from the path of the API: `/v1beta/models/NAME:streamGenerateContent`. The name may
 * have slashes and colons, and stays encoded. undefined: another path. The API has the version `v1`, too.
 */
export function geminiPath(
  path: string,
): { readonly path: string; readonly model: string; readonly stream: boolean } | undefined {
  const [, models = "", rest = ""] = /^\/v1(?:beta|alpha)?\/(models|tunedModels)\/(.+)$/s.exec(path) ?? [];
  const at = rest.lastIndexOf(":");
  if (models === "" || at <= 0) return undefined;
  const [model, method] = [rest.slice(0, at), rest.slice(at + 1).replace(/\/$/, "")];
  const stream = method === streaming;
  if (!stream && !methods.has(method)) return undefined;
  return { path: `${geminiModelsPath}:${stream ? "generateContent" : method}`, model, stream };
}

/** `POST /v1beta/models/NAME:generateContent` and `:streamGenerateContent`. */
export const geminiPort: Port = {
  name: "gemini",
  path: `${geminiModelsPath}:generateContent`,
  operation: "generate_content",
  errorFormat: geminiErrorFormat,
  contentType: geminiContentType,
  *readRequest(body, requestId, options): ReturnType<Port["readRequest"]> {
    const { request, answer, warnings } = yield* geminiRequestInSteps(body, requestId, options);
    const read: ReadRequest = {
      request,
      warnings,
      ...(!answer.isSse && { streamHeaders: ({ name }) => geminiForms[name].listHeaders }),
      streamWriter: (context) => new GeminiStreamWriter(geminiContext(context, answer)),
      writeResponse: (generation, context) => writeGeminiResponse(generation, geminiContext(context, answer)),
    };
    return read;
  },
  tokenCounter: {
    path: `${geminiModelsPath}:countTokens`,
    readRequest: geminiCountInSteps,
    write: writeTokenCount,
  },
  streamHeaders: ({ name }) => geminiForms[name].sseHeaders,
};
