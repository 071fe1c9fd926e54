import type { GenerationFailure } from "../../core/events.ts";
import type { JsonMistake } from "../../core/json-mistake.ts";
import type { Steps } from "../../core/steps.ts";
import { keyIn, openaiErrorFormat, type ApiErrorFormat } from "../api-error-format.ts";
import { commonStatus } from "../error-body.ts";
import { malformedJson } from "../failures.ts";
import type { Port, ReadOptions, ReadRequest } from "../port.ts";
import { openaiLimitHeaders } from "../rate-limits.ts";
import { goJson, goString } from "./go-values.ts";
import { checkCapabilities } from "./models.ts";
import { ollamaChatInSteps, ollamaGenerateInSteps, type ReadOllamaRequest } from "./request.ts";
import { ollamaContext, OllamaStreamWriter, writeOllamaResponse } from "./write.ts";

const json = "application/json; charset=utf-8";

/** The version of Ollama whose API this server follows; clients compare it with the one that they need. */
export const ollamaVersionNumber = "0.33.0";

/**
 * Ollama's errors: `{"error": "text"}`. Ollama's own server has no keys; its clients send `OLLAMA_API_KEY` as a Bearer token. `notFound`
 * words the error for an unknown model. Source: ollama 0.33.0, server/routes.go.
 */
function errorFormat(notFound: (model: string) => string): ApiErrorFormat {
  return {
    keyIn,
    newRequestId: openaiErrorFormat.newRequestId,
    answerHeaders: (requestId) => ({ "x-request-id": requestId }),
    limitHeaders: openaiLimitHeaders,
    missingBody: "missing request body",
    writeFailure: (failure, profile) => ({
      status: commonStatus(failure),
      ...((profile.judgesAsVendor ? routerError(failure) : undefined) ?? {
        contentType: json,
        body: goJson({ error: errorText(failure, notFound) }),
      }),
    }),
  };
}

/** The errors of Ollama's router for unknown paths and methods are not JSON. Source: gin 1.10, gin.go, `default404Body`. */
function routerError({ status, code, message }: GenerationFailure): { contentType: string; body: string } | undefined {
  if (code === "method_not_supported") return { contentType: "text/plain", body: "405 method not allowed" };
  const isPath = status === 404 && message.startsWith("Invalid URL (");
  return isPath ? { contentType: "text/plain", body: "404 page not found" } : undefined;
}

function errorText(
  { message, code, model, param, jsonMistake }: GenerationFailure,
  notFound: (model: string) => string,
): string {
  if (message === malformedJson().failure.message)
    return jsonMistake ? syntaxWords(jsonMistake) : "the request body is not valid JSON";
  // A local model without tokens for it. Source: server/images.go, `CheckCapabilities`.
  if (code === "unsupported_parameter" && param === "suffix") return "this model does not support insert";
  if (code !== "model_not_found" || model === undefined) return message;
  return notFound(model) + (/ Available models: .*/s.exec(message)?.[0].replace(" ", ". ") ?? "");
}

/** Source: Go's encoding/json, scanner.go. */
function syntaxWords({ isEnd, expected, found }: JsonMistake): string {
  return isEnd
    ? "unexpected EOF"
    : `invalid character '${found}' ${scanning[expected] ?? "looking for beginning of value"}`;
}

const scanning: Readonly<Record<string, string>> = {
  "a name in double quotes": "looking for beginning of object key string",
  "a name in double quotes or }": "looking for beginning of object key string",
  "a colon": "after object key",
  "a comma or }": "after object key:value pair",
  "a comma or ]": "after array element",
  "the end of the body": "after top-level value",
};

export const ollamaErrorFormat: ApiErrorFormat = errorFormat((model) => `model '${model}' not found`);

/** Endpoints for embeddings word this error differently. Source: server/routes.go, `handleScheduleError`. */
export const ollamaEmbedErrorFormat: ApiErrorFormat = errorFormat(
  (model) => `model ${goString(model)} not found, try pulling it first`,
);

/** `POST /api/chat`. */
export const ollamaChatPort: Port = ollamaPort("ollama", "/api/chat", "chat", ollamaChatInSteps);

/** `POST /api/generate`. */
export const ollamaGeneratePort: Port = ollamaPort(
  "ollama-generate",
  "/api/generate",
  "text_completion",
  ollamaGenerateInSteps,
);

function ollamaPort(
  name: string,
  path: string,
  operation: string,
  read: (body: unknown, requestId: string, options: ReadOptions) => Steps<ReadOllamaRequest>,
): Port {
  return {
    name,
    path,
    operation,
    errorFormat: ollamaErrorFormat,
    contentType: json,
    checkModel: checkCapabilities,
    *readRequest(body, requestId, options): Steps<ReadRequest> {
      const { request, warnings, answer, keepAliveMs } = yield* read(body, requestId, options);
      return {
        request,
        warnings,
        ...(answer.only === "load" && { preparesOnly: "state" }),
        ...(answer.only === "unload" && { generatesNothing: true }),
        ...(keepAliveMs !== undefined && { keepLoadedMs: keepAliveMs }),
        streamWriter: (context) => new OllamaStreamWriter(ollamaContext(context, answer)),
        writeResponse: (generation, context) => writeOllamaResponse(generation, ollamaContext(context, answer)),
      };
    },
    streamHeaders: ({ name: profile }) => ({
      "content-type": "application/x-ndjson",
      ...(profile === "lean" && { "x-accel-buffering": "no" }),
    }),
  };
}
