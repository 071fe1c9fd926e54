import type { Refusal } from "./chat-server.ts";

/* Servers that take answers of a limited length. */

/** What a request is refused with. `limit`: the tokens of its answer that it asks for, where it does. */
export type Refuse = (limit: number | undefined) => Refusal | undefined;

/** vLLM 0.9 to 0.13. Source: vllm/entrypoints/openai/serving_engine.py, `_validate_input`, and the body of vllm-project/vllm#24463. */
export function vllm(context: number, prompt: number): Refuse {
  return (limit) => {
    const error = (text: string): Refusal => ({
      status: 400,
      body: { error: { message: `${text} None`, type: "BadRequestError", param: null, code: 400 } },
    });
    if (prompt >= context)
      return error(
        `This model's maximum context length is ${context} tokens. However, your request has ${prompt} input tokens. Please reduce the length of the input messages.`,
      );
    if (limit === undefined || limit + prompt <= context) return undefined;
    return error(
      `'max_tokens' or 'max_completion_tokens' is too large: ${limit}. This model's maximum context length is ${context} tokens and your request has ${prompt} input tokens (${limit} > ${context} - ${prompt}).`,
    );
  };
}

/** vLLM since 0.16, which cuts the prompt before it counts. Source: vllm/renderers/params.py; vllm-project/vllm#42474 and #40324. */
export function vllmThatCuts(context: number, prompt: number): Refuse {
  return (limit = 0) => {
    const error = (message: string, param: string, value: number): Refusal => ({
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
    if (prompt + limit <= context) return undefined;
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
    const error = (message: string): Refusal => ({
      status: 400,
      body: { object: "error", message, type: "BadRequestError", param: null, code: 400 },
    });
    if (prompt >= context)
      return error(`The input (${prompt} tokens) is longer than the model's context length (${context} tokens).`);
    if (limit === undefined || limit + prompt < context) return undefined;
    return error(
      `Requested token count exceeds the model's maximum context length of ${context} tokens. You requested a total of ${limit + prompt} tokens: ${prompt} tokens from the input messages and ${limit} tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.`,
    );
  };
}

/** A server whose models have a highest limit, whatever the prompt. `refusal`: its message. */
function highest(most: number, refusal: (limit: number) => string, rest: object): Refuse {
  return (limit = 0) =>
    limit <= most ? undefined : { status: 400, body: { error: { message: refusal(limit), ...rest } } };
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
    ? undefined
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
