import type { JsonMistake } from "../core/json-mistake.ts";
import { nearest } from "../core/nearest.ts";
import { FailureError, invalidRequest, loggedError } from "../core/failure.ts";

/**
 * Failures with OpenAI's messages (recordings of 2023 to 2026, and bodies quoted in issue threads). Failures of request parameters are in
 * request/refusals.ts.
 */

/** 401; the key is shown masked. `key`: what the client sent as Bearer token. */
export function incorrectApiKey(key: string): FailureError {
  return unauthorized(
    `Incorrect API key provided: ${maskKey(key)}. You can find your API key at https://platform.openai.com/account/api-keys.`,
    "invalid_api_key",
  );
}

/** 401 in this server's own words. */
export function unknownOwnKey(key: string): FailureError {
  return unauthorized(
    `Incorrect API key provided: ${maskKey(key)}. This server accepts only the keys of its own configuration (apiKey, keys or keysFile).`,
    "invalid_api_key",
  );
}

/** 401 for an expired key. `name`: the key's. */
export function expiredKey(name: string): FailureError {
  return unauthorized(`The API key of '${name}' has expired.`, "invalid_api_key");
}

/** 401 for a request without any key, in this server's own words. */
export function missingOwnKey(): FailureError {
  return unauthorized(
    "You didn't provide an API key. Send one of the keys of this server's configuration (apiKey, keys or keysFile), as 'Authorization: Bearer KEY' or 'X-Api-Key: KEY'.",
    null,
  );
}

/** 401 for a request without any key. */
export function missingApiKey(): FailureError {
  return unauthorized(
    "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank username) if you're accessing the API from your browser and are prompted for a username and password. You can obtain an API key from https://platform.openai.com/account/api-keys.",
    null,
  );
}

/** 404 of an endpoint that generates. `known`: the available models, which the message lists. */
export function modelNotFound(model: string, known: readonly string[]): FailureError {
  const hint = known.length === 0 ? "" : ` Available models: ${known.map((id) => `\`${id}\``).join(", ")}.`;
  const message = `The model \`${model}\` does not exist or you do not have access to it.${hint}`;
  return new FailureError({ kind: "not-found", message, status: 404, param: null, code: "model_not_found", model });
}

/** 404 of `GET /v1/models/{id}`. */
export function modelDoesNotExist(model: string): FailureError {
  const { failure } = notFound(`The model '${model}' does not exist`, "model", "model_not_found");
  return new FailureError({ ...failure, model });
}

/** 404 of legacy completions, for a model that supports conversations only. */
export function modelOnlyChats(): FailureError {
  return notFound(
    "This is a chat model and not supported in the v1/completions endpoint. Did you mean to use v1/chat/completions?",
    "model",
    null,
  );
}

/** 404 for a stored answer of chat: this server does not store them. */
export function completionNotFound(id: string): FailureError {
  return notFound(`Completion ${id} not found`, "completion_id", "not_found");
}

/** 404 of chat, for a model of legacy completions. */
export function modelOnlyCompletes(): FailureError {
  return notFound(
    "This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?",
    "model",
    null,
  );
}

/** 403 for a model that only embeds. */
export function notAllowedToSample(): FailureError {
  return notAllowed("You are not allowed to sample from this model");
}

/** 403 for a model that does not embed. Source: a recording of 2025-08-07. */
export function notAllowedToEmbed(): FailureError {
  return notAllowed("You are not allowed to generate embeddings from this model");
}

function notAllowed(message: string): FailureError {
  return new FailureError({ message, status: 403, kind: "permission", param: null, code: null });
}

/** 404 for an unknown path. */
export function unknownUrl(method: string, path: string): FailureError {
  return notFound(`Invalid URL (${method} ${path})`, null, null);
}

/** The paths that an error shows: all of them would hide the ones that are meant. */
const shownPaths: ReadonlySet<string> = new Set([
  "POST /v1/chat/completions",
  "POST /v1/responses",
  "POST /v1/messages",
  "POST /v1/embeddings",
  "GET /v1/models",
  "GET /v1/models/{id}",
  "POST /tokenize",
  "POST /api/chat",
  "GET /health",
]);

/**
 * 404 for an unknown path in this server's own words. `paths`: the available ones, such as `POST /v1/chat/completions`. The message has the
 * one that was most likely meant, or else the most common ones. `mayPass`: an upstream may have the path.
 */
export function unknownPath(method: string, path: string, paths: readonly string[], mayPass = false): FailureError {
  const plain = path.slice(0, 200).replace(/^(?:\/+v1(?=\/))*\/*/, "/");
  const meant = nearest(`${method} /v1${plain}`, paths) ?? nearest(`${method} ${plain}`, paths);
  const shown = paths.filter((one) => shownPaths.has(one));
  const more = paths.length - shown.length;
  const hint =
    meant === undefined
      ? `This server has: ${shown.join(", ")}${more > 0 ? `, and ${more} more` : ""}.`
      : `Did you mean ${meant}?`;
  const passing = mayPass
    ? ` To pass this path on to an upstream that has it, add it to the upstream's passPaths: [${plain}].`
    : "";
  return notFound(`There is no ${method} ${path.slice(0, 200)} here. ${hint}${passing}`, null, null);
}

/** 405 for a path that exists, with another method. `allowed`: the methods for the `allow` header. */
export function methodNotAllowed(method: string, path: string, allowed: readonly string[]): FailureError {
  return new FailureError({
    message: `Not allowed to ${method} on ${path}. (HINT: Perhaps you meant to use a different HTTP method?)`,
    status: 405,
    kind: "invalid-request",
    code: "method_not_supported",
    headers: { allow: allowed.join(", ") },
  });
}

/** 426 for a WebSocket at a path without WebSocket: clients then use HTTP. */
export function noWebSocket(): FailureError {
  return new FailureError({
    message: "There is no WebSocket at this address. Please send the request by HTTP.",
    status: 426,
    kind: "invalid-request",
    code: "websocket_not_supported",
    headers: { upgrade: "HTTP/1.1", connection: "Upgrade" },
  });
}

/** 413. `limit` in bytes. */
export function bodyTooLarge(limit: number): FailureError {
  return new FailureError({
    message: `The request body is too large. The limit is ${limit} bytes.`,
    status: 413,
    kind: "too-large",
    code: "request_too_large",
  });
}

/** 415 for a body in a content coding that is not supported. */
export function unsupportedEncoding(coding: string): FailureError {
  return new FailureError({
    message: `Unsupported content encoding: '${coding.slice(0, 100)}'. Send the body as it is, or compressed with zstd, br, gzip or deflate.`,
    status: 415,
    kind: "invalid-request",
    param: null,
    code: "unsupported_content_encoding",
  });
}

/** 400 for a body that is not in the content coding that its header names. */
export function invalidEncoding(coding: string, cause: unknown): FailureError {
  return new FailureError({
    message: `The request body is not valid ${coding} data.`,
    status: 400,
    kind: "invalid-request",
    param: null,
    code: "invalid_content_encoding",
    cause,
  });
}

/** 500 for a body that a framework has read and not passed on: waiting for it would never end. */
export function bodyAlreadyRead(): FailureError {
  return new FailureError({
    kind: "internal",
    status: 500,
    message:
      "The request body was read before it reached Truewire, and is not in `request.body`. This is a mistake of the server that embeds it: pass the request on before a body parser reads it. The recipes for Express, Fastify, Koa, Hono and h3 are in docs/serving.md.",
    param: null,
    code: "body_already_read",
  });
}

/** 400 for a body that is not JSON, or not UTF-8, in this server's own words. `mistake`: where and why. */
export function ownMalformedJson(mistake: string): FailureError {
  return invalidRequest(`The request body is not valid JSON: ${mistake}.`);
}

/** 400 for a body that is not JSON, or not UTF-8. */
export function malformedJson(jsonMistake?: JsonMistake): FailureError {
  const { failure } = invalidRequest(
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble figuring out how to fix this, please contact us through our help center at help.openai.com.)",
  );
  return new FailureError({ ...failure, ...(jsonMistake && { jsonMistake }) });
}

/** 400 for a request without `model`; OpenAI's words differ from those for any other missing parameter. */
export function missingModel(): FailureError {
  return invalidRequest("you must provide a model parameter");
}

/** 500 for a defect: what happened is in the log (`cause`), not in the answer. */
export function internalError(cause: unknown): FailureError {
  return new FailureError({
    message: "The server had an error while processing your request. Sorry about that!",
    status: 500,
    kind: "internal",
    // A string is logged as it is, and a thrown one may be anything.
    ...(cause !== undefined && { cause: cause instanceof Error ? cause : loggedError(cause) }),
  });
}

/** Keys of 13 characters and more show their first 8 and last 4; shorter ones are repeated whole, as OpenAI does. */
export function maskKey(key: string): string {
  return key.length > 12 ? key.slice(0, 8) + "*".repeat(key.length - 12) + key.slice(-4) : key;
}

function unauthorized(message: string, code: string | null): FailureError {
  return new FailureError({ message, status: 401, kind: "authentication", code });
}

/** 404. */
export function notFound(message: string, param: string | null, code: string | null): FailureError {
  return new FailureError({ message, status: 404, kind: "not-found", param, code });
}
