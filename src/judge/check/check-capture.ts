import type { Judgement } from "./report/report.ts";
import type { Exchange } from "./rules/exchange.ts";
import { judge } from "./rules/judge.ts";
import { parsedJson } from "./rules/view.ts";
import type { ProfileName } from "./rules/profile/profile-rule.ts";
import { isOfOtherEndpoint } from "../../wire/apis/ordered-capture.ts";
import { isObject } from "../../wire/core/json.ts";

/**
 * Judges the body of an answer that was captured elsewhere, with its request where that was kept; `demanded`: the profile that it must
 * have.
 *
 * @example
 * import { judgeCapture } from "truewire/rules";
 *
 * const choices = [{ index: 0, delta: { role: "assistant", content: "Hi" }, finish_reason: null }];
 * const chunk = { id: "chatcmpl-1", object: "chat.completion.chunk", created: "today", model: "m", choices };
 * const body = `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`;
 * for (const { rule, found, start, end } of judgeCapture("capture.sse", body).findings)
 *   console.log(rule, "|", found, "|", body.slice(start, end));
 * // → finish/present | choice 0 has no finish reason |
 * // → stream/created | created is "today", must be number | "created"
 */
export function judgeCapture(
  name: string,
  body: string,
  request?: Record<string, unknown>,
  demanded?: ProfileName | "openai",
): Judgement {
  return judgeAnswer(name, body, { request }, demanded);
}

/** What is known of an answer in addition to its body. */
export interface AroundCapture {
  readonly method?: string | undefined;
  readonly path?: string | undefined;
  readonly request?: Record<string, unknown> | undefined;
  readonly status?: number | undefined;
  /** By lower-case names. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** false: the connection broke before the answer's end. */
  readonly complete?: boolean | undefined;
}

/** The same for an answer of which more is known than its body. */
export function judgeAnswer(
  name: string,
  captured: string,
  { method = "POST", path = "", request, status, headers, complete = true }: AroundCapture,
  demanded?: ProfileName | "openai",
): Judgement & { readonly exchange: Exchange } {
  const body = batchResult(captured) ?? captured;
  const exchange: Exchange = {
    endpoint: endpointOfPath(method, path) ?? endpointOf(body, request),
    request: { method, path, ...(request && { body: request }) },
    // The headers of a batch's results are not those of its messages.
    response: { status: status ?? statusOf(body), headers: (body === captured && headers) || null, body, complete },
  };
  const { findings, shown } = judge(exchange, demanded);
  return { id: name, about: "a capture", exchange, findings, shown };
}

/** Returns the answers in the text of a file: of the results of a batch, each message and error, a line each; or the text itself. */
export function capturedAnswers(text: string): readonly string[] {
  if (!isBatchResult.test(text)) return [text];
  return text.split("\n").flatMap((line) => batchResult(line) ?? []);
}

const isBatchResult = /^\s*\{\s*"custom_id"/;

/** Returns the message or the error in one line of the results of an Anthropic batch; undefined for any other body. */
function batchResult(body: string): string | undefined {
  if (!isBatchResult.test(body)) return undefined;
  const value = parsedJson(body);
  const result = isObject(value) && isObject(value.result) ? value.result : {};
  const answer = result.message ?? result.error;
  return isObject(answer) ? JSON.stringify(answer) : undefined;
}

/** Which endpoint a path means; undefined where it does not say. */
function endpointOfPath(method: string, path: string): Exchange["endpoint"] | undefined {
  const posted: readonly [string, Exchange["endpoint"]][] = [
    ["/chat/completions", "chat"],
    ["/completions", "completions"],
    ["/responses", "responses"],
    ["/messages", "messages"],
    ["/api/embeddings", "ollama-embeddings"],
    ["/embeddings", "embeddings"],
    ["/api/chat", "ollama-chat"],
    ["/api/generate", "ollama-generate"],
    ["/api/embed", "ollama-embed"],
    ["/api/show", "ollama-show"],
  ];
  return method === "POST" ? (geminiEndpoint(path) ?? posted.find(([end]) => path.endsWith(end))?.[1]) : undefined;
}

/** The methods of Gemini's API follow the model: `/v1beta/models/m:generateContent?alt=sse`. */
function geminiEndpoint(path: string): Exchange["endpoint"] | undefined {
  const [, method] = /:(\w+)(?:\?|$)/.exec(path) ?? [];
  const methods: Readonly<Record<string, Exchange["endpoint"]>> = {
    generateContent: "gemini",
    streamGenerateContent: "gemini",
    countTokens: "gemini-tokens",
    embedContent: "gemini-embedding",
    batchEmbedContents: "gemini-embeddings",
  };
  return method !== undefined && Object.hasOwn(methods, method) ? methods[method] : undefined;
}

function endpointOf(body: string, request: Record<string, unknown> | undefined): Exchange["endpoint"] {
  if (/^\s*\{\s*"object"\s*:\s*"response.input_tokens"/.test(body)) return "response-tokens";
  if (/"object"\s*:\s*"response.compaction"/.test(body)) return "response-compaction";
  if (/^\s*\{[^{}]*"type"\s*:\s*"message_batch(_deleted)?"/.test(body)) return "other";
  if (/^\s*(?:data:\s*|\[\s*)?\{\s*"(?:candidates|promptFeedback|usageMetadata)"\s*:/.test(body)) return "gemini";
  if (/"object"\s*:\s*"response"|"type"\s*:\s*"response\.\w/.test(body)) return "responses";
  const anthropics = anthropicEndpoint(body);
  if (anthropics) return anthropics;
  const listed = openaiEndpoint(body);
  if (listed) return listed;
  if (request) return "prompt" in request ? "completions" : "chat";
  if (/"object"\s*:\s*"text_completion"/.test(body)) return "completions";
  return isOfOtherEndpoint(body) ? "other" : "chat";
}

/** Of OpenAI's endpoints that generate nothing. */
function openaiEndpoint(body: string): Exchange["endpoint"] | undefined {
  const value = parsedJson(body);
  if (!isObject(value)) return undefined;
  if (value.object === "model") return "model";
  if (value.object !== "list" || !Array.isArray(value.data)) return undefined;
  const [first] = value.data as readonly unknown[];
  const kind = isObject(first) ? first["object"] : "model";
  if (kind === "embedding") return "embeddings";
  return kind === "model" ? "models" : "other";
}

/** Of the Messages API: what its events and bodies say that they are. */
function anthropicEndpoint(body: string): Exchange["endpoint"] | undefined {
  if (/"type"\s*:\s*"(message_(start|delta|stop)|content_block_(start|delta|stop))"/.test(body)) return "messages";
  // A stream that is nothing but an error.
  if (/^(event: *error\s+)?data: *\{"type"\s*:\s*"error"\s*,\s*"error"\s*:/.test(body)) return "messages";
  const value = parsedJson(body);
  if (!isObject(value)) return undefined;
  if (value.type === "message" || (value.type === "error" && "error" in value)) return "messages";
  if (Object.keys(value).join() === "input_tokens") return "message-tokens";
  if (value.type === "model") return "anthropic-model";
  if (!Array.isArray(value.data) || value.object !== undefined || !("has_more" in value)) return undefined;
  const [first] = value.data as readonly unknown[];
  return isObject(first) && first["type"] !== "model" ? "other" : "anthropic-models";
}

/** A body alone has no status; one that is nothing but an error was not sent with 200. */
function statusOf(body: string): number {
  const value = parsedJson(body);
  if (!isObject(value) || value.object === "response") return 200;
  return "error" in value ? 400 : 200;
}
