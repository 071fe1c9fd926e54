import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { bodyOf, streamOf } from "./scripted-server.ts";

/** What a request is refused with; null: it is answered. `limit`: the tokens of its answer that it asks for, where it does. */
export type Refuse = (limit: number | undefined) => { readonly status: number; readonly body: unknown } | null;

export interface LimitedServer {
  /** The base URL, `/v1` included. */
  readonly url: string;
  /** The bodies of the requests to generate, in order. */
  readonly bodies: readonly Readonly<Record<string, unknown>>[];
  close(): Promise<void>;
}

/**
 * A server that takes answers of a limited length, on loopback. It lists the model "m" with the members of `listed`, and answers "Hello"
 * to what `refuse` takes: in chat, or as Anthropic does, where `/messages` is asked. Asked to count a prompt, it answers `counted` where
 * that is a number, and 404 otherwise.
 */
export async function startLimited(refuse: Refuse, listed: object = {}, counted?: number): Promise<LimitedServer> {
  const bodies: Record<string, unknown>[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    const send = (status: number, value: unknown): unknown =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    if (request.method === "GET")
      return send(200, { object: "list", data: [{ id: "m", object: "model", owned_by: "t", ...listed }] });
    let text = "";
    request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    request.on("end", () => {
      if (text === "") return send(400, { error: { message: "The body is empty." } });
      if (path.endsWith("/count_tokens"))
        return counted === undefined ? send(404, {}) : send(200, { input_tokens: counted });
      const body = JSON.parse(text) as Record<string, unknown>;
      bodies.push(body);
      const refused = refuse((body["max_completion_tokens"] ?? body["max_tokens"] ?? undefined) as number | undefined);
      if (refused) return send(refused.status, refused.body);
      const isStream = body["stream"] === true;
      response.writeHead(200, { "content-type": isStream ? "text/event-stream" : "application/json" });
      if (path.endsWith("/messages")) return response.end(isStream ? messageStream : JSON.stringify(message));
      return response.end(isStream ? streamOf("Hello") : bodyOf("Hello"));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    bodies,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const message = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "m",
  content: [{ type: "text", text: "Hello" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 2 },
};

const messageStream = [
  { type: "message_start", message: { ...message, content: [], stop_reason: null } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 2 } },
  { type: "message_stop" },
]
  .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  .join("");

/** vLLM 0.9 to 0.13. Source: vllm/entrypoints/openai/serving_engine.py, `_validate_input`, and the body of vllm-project/vllm#24463. */
export function vllm(context: number, prompt: number): Refuse {
  return (limit) => {
    const error = (text: string): ReturnType<Refuse> => ({
      status: 400,
      body: { error: { message: `${text} None`, type: "BadRequestError", param: null, code: 400 } },
    });
    if (prompt >= context)
      return error(
        `This model's maximum context length is ${context} tokens. However, your request has ${prompt} input tokens. Please reduce the length of the input messages.`,
      );
    if (limit === undefined || limit + prompt <= context) return null;
    return error(
      `'max_tokens' or 'max_completion_tokens' is too large: ${limit}. This model's maximum context length is ${context} tokens and your request has ${prompt} input tokens (${limit} > ${context} - ${prompt}).`,
    );
  };
}

/** vLLM since 0.16, which cuts the prompt before it counts. Source: vllm/renderers/params.py; vllm-project/vllm#42474 and #40324. */
export function vllmThatCuts(context: number, prompt: number): Refuse {
  return (limit = 0) => {
    const error = (message: string, param: string, value: number): ReturnType<Refuse> => ({
      status: 400,
      body: {
        error: {
          message: `${message} (parameter=${param}, value=${value})`,
          type: "BadRequestError",
          param,
          code: 400,
        },
      },
    });
    if (limit > context)
      return error(
        `max_tokens=${limit} cannot be greater than max_model_len=max_total_tokens=${context}. Please request fewer output tokens.`,
        "max_tokens",
        limit,
      );
    if (prompt + limit <= context) return null;
    const seen = Math.min(prompt, context - limit + 1);
    const least = seen < prompt ? "at least " : "";
    return error(
      `This model's maximum context length is ${context} tokens. However, you requested ${limit} output tokens and your prompt contains ${least}${seen} input tokens, for a total of ${least}${seen + limit} tokens. Please reduce the length of the input prompt or the number of requested output tokens.`,
      "input_tokens",
      seen,
    );
  };
}

/** SGLang. Source: python/sglang/srt/managers/tokenizer_manager.py, `_validate_one_request`. */
export function sglang(context: number, prompt: number): Refuse {
  return (limit) => {
    const error = (message: string): ReturnType<Refuse> => ({
      status: 400,
      body: { object: "error", message, type: "BadRequestError", param: null, code: 400 },
    });
    if (prompt >= context)
      return error(`The input (${prompt} tokens) is longer than the model's context length (${context} tokens).`);
    if (limit === undefined || limit + prompt < context) return null;
    return error(
      `Requested token count exceeds the model's maximum context length of ${context} tokens. You requested a total of ${limit + prompt} tokens: ${prompt} tokens from the input messages and ${limit} tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.`,
    );
  };
}

/** A server whose models have a highest limit, whatever the prompt. `refusal`: its message. */
function highest(most: number, refusal: (limit: number) => string, rest: object): Refuse {
  return (limit = 0) => (limit <= most ? null : { status: 400, body: { error: { message: refusal(limit), ...rest } } });
}

/** deepseek-ai/DeepSeek-V3#69. */
export const deepseek: Refuse = highest(
  8192,
  () => "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
  { type: "invalid_request_error", param: null, code: "invalid_request_error" },
);

/** Alishahryar1/free-claude-code#955. */
export const groq: Refuse = highest(
  8192,
  () =>
    "max_completion_tokens must be less than or equal to 8192, the maximum value for max_completion_tokens is less than the context_window for this model",
  { type: "invalid_request_error", param: "max_completion_tokens" },
);

/** ChatGPTNextWeb/NextChat#3195. */
export const openai: Refuse = highest(
  16_384,
  (limit) =>
    `max_tokens is too large: ${limit}. This model supports at most 16384 completion tokens, whereas you provided ${limit}.`,
  { type: "invalid_request_error", param: "max_tokens", code: null },
);

/** OpenHands/OpenHands#11090. */
export const anthropic: Refuse = (limit = 0) =>
  limit <= 8192
    ? null
    : {
        status: 400,
        body: {
          type: "error",
          error: {
            type: "invalid_request_error",
            message: `max_tokens: ${limit} > 8192, which is the maximum allowed number of output tokens for m`,
          },
          request_id: "req_1",
        },
      };
