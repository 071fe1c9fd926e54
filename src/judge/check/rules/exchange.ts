/** One request and its complete, raw answer: what a rule judges. */
export interface Exchange {
  readonly endpoint:
    | "chat"
    | "completions"
    | "responses"
    /** `POST /v1/responses/input_tokens`. */
    | "response-tokens"
    /** `GET /v1/responses/{id}/input_items`. */
    | "response-items"
    /** `DELETE /v1/responses/{id}`. */
    | "response-deletion"
    /** `POST /v1/responses/compact`. */
    | "response-compaction"
    /** A conversation of `/v1/conversations`, and its deletion. */
    | "conversation"
    /** An answer by WebSocket, each message as the `data` of an event; a binary message is a comment. */
    | "response-socket"
    /** The message that refuses a request by WebSocket. */
    | "response-socket-error"
    | "models"
    | "model"
    | "embeddings"
    | "messages"
    /** `POST /v1/messages/count_tokens`, and the models in Anthropic's form. */
    | "message-tokens"
    | "anthropic-models"
    | "anthropic-model"
    /** Paths below Ollama's `/api`. */
    | "ollama-chat"
    | "ollama-generate"
    | "ollama-tags"
    | "ollama-ps"
    | "ollama-show"
    | "ollama-version"
    | "ollama-embed"
    | "ollama-embeddings"
    /** `:generateContent` and `:streamGenerateContent` of Gemini's API, and its paths next to them. */
    | "gemini"
    | "gemini-tokens"
    | "gemini-models"
    | "gemini-model"
    | "gemini-embedding"
    | "gemini-embeddings"
    | "other";
  readonly request: {
    readonly method: string;
    readonly path: string;
    /** The JSON body; `undefined` if it is not known (a capture without its request) or absent. */
    readonly body?: Readonly<Record<string, unknown>>;
  };
  readonly response: {
    readonly status: number;
    /** Headers by lower-case name; `null` if they are not known (a capture of the body alone). */
    readonly headers: Readonly<Record<string, string>> | null;
    readonly body: string;
    /** Whether the answer ended as HTTP requires; `false` if the connection was cut. */
    readonly complete: boolean;
  };
}

/** The API that an endpoint belongs to; `undefined` for other paths. */
export const apiOfEndpoint: Readonly<Record<Exchange["endpoint"], string | undefined>> = {
  chat: "chat",
  completions: "completions",
  responses: "responses",
  "response-tokens": "responses",
  "response-items": "responses",
  "response-deletion": "responses",
  "response-compaction": "responses",
  conversation: "responses",
  "response-socket": "responses",
  "response-socket-error": "responses",
  models: "models",
  model: "models",
  embeddings: "embeddings",
  messages: "messages",
  "message-tokens": "messages",
  "anthropic-models": "messages",
  "anthropic-model": "messages",
  "ollama-chat": "ollama",
  "ollama-generate": "ollama",
  "ollama-tags": "ollama",
  "ollama-ps": "ollama",
  "ollama-show": "ollama",
  "ollama-version": "ollama",
  "ollama-embed": "ollama",
  "ollama-embeddings": "ollama",
  gemini: "gemini",
  "gemini-tokens": "gemini",
  "gemini-models": "gemini",
  "gemini-model": "gemini",
  "gemini-embedding": "gemini",
  "gemini-embeddings": "gemini",
  other: undefined,
};

/** Returns the vendor of an endpoint's API, which decides the form of errors and headers. */
export function vendorOf({ endpoint }: Pick<Exchange, "endpoint">): "OpenAI" | "Anthropic" | "Ollama" | "Google" {
  return vendors[apiOfEndpoint[endpoint] ?? ""] ?? "OpenAI";
}

const vendors: Readonly<Record<string, "Anthropic" | "Ollama" | "Google">> = {
  messages: "Anthropic",
  ollama: "Ollama",
  gemini: "Google",
};

/** Returns a member of the request's body, or `undefined` if the request is not known. */
export function requestMember(exchange: Exchange, member: string): unknown {
  return exchange.request.body?.[member];
}

/** Returns whether the request asks for usage in the stream, or `undefined` if the request is not known. */
export function requestsUsage(exchange: Exchange): boolean | undefined {
  if (exchange.request.body === undefined) return undefined;
  const options = exchange.request.body.stream_options as { include_usage?: unknown } | null | undefined;
  return options?.include_usage === true;
}

/**
 * Returns whether an exchange is judged as a stream: the request has `stream: true` and the status is 200, or the answer came by WebSocket.
 * Where the request is unknown, the content type decides, or the look of the body.
 */
export function isStream(exchange: Exchange): boolean {
  const { endpoint, request, response } = exchange;
  if (endpoint === "response-socket") return true;
  if (response.status !== 200) return false;
  const vendor = vendorOf(exchange);
  if (vendor === "Ollama") return isOllamaStream(exchange);
  // A stream that is a JSON list is named by its path alone.
  if (vendor === "Google") return endpoint === "gemini" && isGeminiStream(exchange);
  if (request.body) return request.body.stream === true;
  return (
    response.headers?.["content-type"]?.startsWith("text/event-stream") ??
    /^\s*(data|event|id|retry|):/.test(response.body)
  );
}

/** Of a capture without its path, the look of the body says it. */
function isGeminiStream({ request: { path }, response: { body } }: Exchange): boolean {
  return path === "" ? /^\s*(?:data:|\[)/.test(body) : path.includes(":streamGenerateContent");
}

/** A stream is the default of Ollama's API. A request without messages or prompt is answered whole. */
function isOllamaStream({ endpoint, request: { body }, response }: Exchange): boolean {
  if (endpoint !== "ollama-chat" && endpoint !== "ollama-generate") return false;
  if (body === undefined) return /^[^\n]*\n[^\n]/.test(response.body);
  const { messages, prompt } = body;
  return body.stream !== false && ((Array.isArray(messages) && messages.length > 0) || (prompt ?? "") !== "");
}
