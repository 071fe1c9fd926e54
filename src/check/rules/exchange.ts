/** One request and everything that came back, as raw as it can be had. What a rule judges. */
export interface Exchange {
  readonly endpoint:
    | "chat"
    | "completions"
    | "responses"
    /** Of the Responses API: how many tokens an input has, */
    | "response-tokens"
    /** what was put into a stored response, */
    | "response-items"
    /** that it is deleted, */
    | "response-deletion"
    /** a history made short, */
    | "response-compaction"
    /** an answer by WebSocket: each message as the `data` of an event (what is no text is a comment), */
    | "response-socket"
    /** and the one message that refuses a request there. */
    | "response-socket-error"
    | "models"
    | "model"
    | "embeddings"
    | "messages"
    /** Of the Messages API: how many tokens a prompt has, and the models in Anthropic's form. */
    | "message-tokens"
    | "anthropic-models"
    | "anthropic-model"
    | "other";
  readonly request: {
    readonly method: string;
    readonly path: string;
    /** The JSON that was sent; undefined when it is not known (a capture without its request) or there was none. */
    readonly body?: Readonly<Record<string, unknown>>;
  };
  readonly response: {
    readonly status: number;
    /** Lower-case names; null when they are not known (a capture of the body alone). */
    readonly headers: Readonly<Record<string, string>> | null;
    readonly body: string;
    /** Whether the connection was closed as HTTP demands; false for a cut one. */
    readonly complete: boolean;
  };
}

/** The API that an endpoint belongs to; undefined for a path of none. */
export const apiOf: Readonly<Record<Exchange["endpoint"], string | undefined>> = {
  chat: "chat",
  completions: "completions",
  responses: "responses",
  "response-tokens": "responses",
  "response-items": "responses",
  "response-deletion": "responses",
  "response-compaction": "responses",
  "response-socket": "responses",
  "response-socket-error": "responses",
  models: "models",
  model: "models",
  embeddings: "embeddings",
  messages: "messages",
  "message-tokens": "messages",
  "anthropic-models": "messages",
  "anthropic-model": "messages",
  other: undefined,
};

/** Whose API it is: what it says beside its answers (errors, headers) has a form of its own. */
export function vendorOf({ endpoint }: Pick<Exchange, "endpoint">): "OpenAI" | "Anthropic" {
  return apiOf[endpoint] === "messages" ? "Anthropic" : "OpenAI";
}

/** What the request asked of a stream; undefined where the request is not known. */
export function asked(exchange: Exchange, member: string): unknown {
  return exchange.request.body?.[member];
}

/** Whether usage was asked for; undefined when the request is not known. */
export function askedForUsage(exchange: Exchange): boolean | undefined {
  if (exchange.request.body === undefined) return undefined;
  const options = exchange.request.body.stream_options as { include_usage?: unknown } | null | undefined;
  return options?.include_usage === true;
}
