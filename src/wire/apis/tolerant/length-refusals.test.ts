import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readLengthRefusal } from "./read-failure.ts";

/**
 * vLLM's refusal of `max_tokens: 32000` was read as "prompt is too long: 12037 tokens > 32768 maximum", and Claude Code stopped: one pattern
 * took any two numbers behind "maximum context length". The tests had that message only with a prompt that was too long.
 */
describe("a limit that is too high for a prompt that fits", () => {
  test.each<[string, string, number]>([
    [
      "vLLM 0.9 to 0.13 (andrewcho-dev/opsconductor-ng, claude-code-best/claude-code#272)",
      "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 12037 input tokens (32000 > 32768 - 12037). None",
      20_731,
    ],
    [
      "vLLM until 0.8 (vllm-project/vllm#20409)",
      "This model's maximum context length is 16384 tokens. However, you requested 19591 tokens (9591 in the messages, 10000 in the completion). Please reduce the length of the messages or completion. None",
      6793,
    ],
    [
      "vLLM since 0.16, a prompt that was counted",
      "This model's maximum context length is 131072 tokens. However, you requested 65536 output tokens and your prompt contains 100000 input tokens, for a total of 165536 tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
      31_072,
    ],
    [
      "OpenAI (ChatGPTNextWeb/NextChat#3195)",
      "This model's maximum context length is 8192 tokens. However, you requested 8256 tokens (64 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
      8128,
    ],
    [
      "OpenAI, a prompt that misses by one token",
      "This model's maximum context length is 8192 tokens. However, you requested 8193 tokens (64 in the messages, 129 in the functions, 8000 in the completion). Please reduce the length of the messages, functions, or completion.",
      7999,
    ],
    [
      "OpenAI's completions (aboutmydreams/custom_data_gpt#2)",
      "This model's maximum context length is 4097 tokens, however you requested 4353 tokens (3841 in your prompt; 512 for the completion). Please reduce your prompt; or completion length.",
      256,
    ],
    [
      "OpenRouter (Aider-AI/aider#3721)",
      'This endpoint\'s maximum context length is 131072 tokens. However, you requested about 141607 tokens (10535 of text input, 131072 in the output). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt automatically.',
      120_537,
    ],
    [
      "SGLang, which refuses a sum that equals the context",
      "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 44037 tokens: 12037 tokens from the input messages and 32000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
      20_730,
    ],
    [
      "text-generation-inference, Together (stanford-crfm/helm#2079)",
      "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 2019 `inputs` tokens and 30 `max_new_tokens`",
      29,
    ],
    [
      "text-generation-inference (huggingface/transformers#28523)",
      "Input validation error: `max_new_tokens` must be <= 192. Given: 200",
      192,
    ],
    [
      "Anthropic's context (docker/docker-agent#569)",
      "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again",
      21_041,
    ],
    [
      "Anthropic's models (OpenHands/OpenHands#11090)",
      "max_tokens: 1000000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-20250514",
      64_000,
    ],
    [
      "OpenAI's models (enoch3712/ExtractThinker#346)",
      "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.",
      16_384,
    ],
    [
      "DeepSeek (deepseek-ai/DeepSeek-V3#69)",
      "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
      8192,
    ],
    [
      "DashScope (open-webui/open-webui#10507)",
      "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]",
      8192,
    ],
    [
      "Groq",
      "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model",
      8192,
    ],
    [
      "Groq (Alishahryar1/free-claude-code#955)",
      "max_completion_tokens must be less than or equal to 40960, the maximum value for max_completion_tokens is less than the context_window for this model",
      40_960,
    ],
    [
      "Groq (skapadia3214/groq-moa#8)",
      "max_tokens for `llama-3.1-8b-instant` must be less than or equal to 8000",
      8000,
    ],
    [
      "Gemini (BerriAI/litellm#10548)",
      "Unable to submit request because it has a maxOutputTokens value of 65536 but the supported range is from 1 (inclusive) to 65536 (exclusive). Update the value and try again.",
      65_535,
    ],
    [
      "Amazon Bedrock (langgenius/dify#10390)",
      "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.",
      4096,
    ],
    ["Fireworks (nextlevelbuilder/goclaw#660)", "Requests with max_tokens > 4096 must have stream=true", 4096],
    ["Z.AI (diegosouzapw/OmniRoute#4518)", "The max_tokens parameter is illegal.：限制数值范围[1,131072]", 131_072],
  ])("%s", (_, message, max) => {
    expect(readLengthRefusal(message)).toEqual({ kind: "answer", max });
  });

  /** These counts are lower bounds: `context - count` is again one token too many (AIDotNet/OpenCowork#82). */
  test.each<[string, string, number]>([
    [
      "vLLM since 0.16 (vllm-project/vllm#42474)",
      "This model's maximum context length is 32768 tokens. However, you requested 32000 output tokens and your prompt contains at least 769 input tokens, for a total of at least 32769 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=769)",
      32_768,
    ],
    [
      "vLLM since 0.16, in characters",
      "This model's maximum context length is 8192 tokens. However, you requested 64 output tokens and your prompt contains 100000 characters (more than 81280 characters, which is the upper bound for 8128 input tokens). Please reduce the length of the input prompt or the number of requested output tokens.",
      8192,
    ],
    [
      "vLLM 0.14 and 0.15",
      "You passed 769 input tokens and requested 32000 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 768 tokens. Please reduce the length of the input prompt.",
      32_768,
    ],
    [
      "vLLM, a limit above the context (vllm-project/vllm#40324)",
      "max_tokens=38000cannot be greater than max_model_len=max_total_tokens=32768. Please request fewer output tokens. (parameter=max_tokens, value=38000)",
      32_768,
    ],
  ])("%s does not say how much fits", (_, message, context) => {
    expect(readLengthRefusal(message)).toEqual({ kind: "answer", max: null, context });
  });
});

describe("a prompt that is too long", () => {
  test.each<[string, string, { asked: number; most: number } | undefined]>([
    ["Anthropic", "prompt is too long: 203052 tokens > 200000 maximum", { asked: 203_052, most: 200_000 }],
    [
      "OpenAI (webtimemachine/wtm2#579)",
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. Please reduce the length of the messages.",
      { asked: 204_308, most: 128_000 },
    ],
    [
      "OpenAI's Responses",
      "Your input exceeds the context window of this model. Please adjust your input and try again.",
      undefined,
    ],
    [
      "vLLM 0.9 to 0.13",
      "This model's maximum context length is 4096 tokens. However, your request has 4100 input tokens. Please reduce the length of the input messages. None",
      { asked: 4100, most: 4096 },
    ],
    [
      "vLLM's embeddings",
      "This model's maximum context length is 512 tokens. However, you requested 600 tokens in the input for embedding generation. Please reduce the length of the input.",
      { asked: 600, most: 512 },
    ],
    [
      "vLLM, with a limit beside it",
      "'max_tokens' or 'max_completion_tokens' is too large: 100. This model's maximum context length is 4096 tokens and your request has 4096 input tokens (100 > 4096 - 4096).",
      { asked: 4096, most: 4096 },
    ],
    [
      "vLLM until 0.8 (vllm-project/vllm#20409)",
      "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.",
      { asked: 112_946, most: 16_384 },
    ],
    [
      "vLLM since 0.16",
      "This model's maximum context length is 32768 tokens. However, you requested 0 output tokens and your prompt contains at least 32769 input tokens, for a total of at least 32769 tokens.",
      { asked: 32_769, most: 32_768 },
    ],
    // Its words were not known, and clients got a 400 without the code on which they compact.
    [
      "vLLM 0.32",
      "This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049 input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=2049)",
      { asked: 2049, most: 2048 },
    ],
    [
      "OpenRouter (refly-ai/refly#1177)",
      "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input). Please reduce the length of either one.",
      { asked: 42_832, most: 32_768 },
    ],
    [
      "SGLang (QwenLM/Qwen3#1321)",
      "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
      { asked: 61_709, most: 40_960 },
    ],
    [
      "SGLang, with one token of room, which it does not give",
      "Requested token count exceeds the model's maximum context length of 100 tokens. You requested a total of 109 tokens: 99 tokens from the input messages and 10 tokens for the completion.",
      { asked: 99, most: 100 },
    ],
    [
      "LM Studio (Gitlawb/openclaude#353)",
      "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.",
      { asked: 13_055, most: 4096 },
    ],
    [
      "LM Studio, without numbers (lmstudio-ai/lmstudio-bug-tracker#2205)",
      "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input",
      undefined,
    ],
    [
      "LM Studio (lmstudio-ai/lmstudio-bug-tracker#546)",
      "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough.",
      { asked: 111_490, most: 32_768 },
    ],
    [
      "LM Studio (anomalyco/opencode#11141)",
      "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)",
      { asked: 15_028, most: 7424 },
    ],
    [
      "llama.cpp",
      "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it",
      { asked: 9412, most: 8192 },
    ],
    ["llama.cpp before 2025-10", "the request exceeds the available context size, try increasing it", undefined],
    ["Ollama", "the input length exceeds the context length", undefined],
    [
      "Ollama with MLX",
      "input length (9412 tokens) exceeds the model's maximum context length (8192 tokens)",
      { asked: 9412, most: 8192 },
    ],
    [
      "Mistral",
      "Prompt contains 36000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
      { asked: 36_000, most: 32_768 },
    ],
    [
      "xAI",
      "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
      { asked: 537_812, most: 131_072 },
    ],
    [
      "Gemini (google-gemini/gemini-cli#4692)",
      "The input token count (2845475) exceeds the maximum number of tokens allowed (1048576).",
      { asked: 2_845_475, most: 1_048_576 },
    ],
    [
      "vLLM's images (vllm-project/vllm#12165)",
      "The prompt (total length 25938) is too long to fit into the model (context length 4096). Make sure that `max_model_len` is no smaller",
      { asked: 25_938, most: 4096 },
    ],
  ])("%s", (_, message, tokens) => {
    expect(readLengthRefusal(message)).toEqual(tokens ? { kind: "prompt", tokens } : { kind: "prompt" });
  });
});

test("what is about something else is null", () => {
  for (const message of [
    "",
    "Rate limit reached for model in organization on tokens per minute (TPM): Limit 6000, Used 5000, Requested 2000.",
    "max_tokens must be at least 1",
    "The context of this conversation is unknown.",
  ])
    expect(readLengthRefusal(message)).toBeNull();
});

test("for every prompt, limit and context: what fits is told to the token, or the prompt is too long", () => {
  const tokens = fc.integer({ min: 1, max: 2_000_000 });
  fc.assert(
    fc.property(tokens, tokens, tokens, (context, prompt, limit) => {
      fc.pre(prompt + limit > context);
      const free = context - prompt;
      for (const message of [
        `'max_tokens' or 'max_completion_tokens' is too large: ${limit}. This model's maximum context length is ${context} tokens and your request has ${prompt} input tokens (${limit} > ${context} - ${prompt}).`,
        `This model's maximum context length is ${context} tokens. However, you requested ${prompt + limit} tokens (${prompt} in the messages, ${limit} in the completion).`,
        `input length and \`max_tokens\` exceed context limit: ${prompt} + ${limit} > ${context}, decrease input length`,
      ]) {
        expect(readLengthRefusal(message)).toEqual(
          free > 0 ? { kind: "answer", max: free } : { kind: "prompt", tokens: { asked: prompt, most: context } },
        );
      }
    }),
  );
});

test("of a long message the beginning is read", () => {
  const refusal = "prompt is too long: 9 tokens > 8 maximum";
  expect(readLengthRefusal(`${"x".repeat(3000)}${refusal}`)).not.toBeNull();
  expect(readLengthRefusal(`${"x".repeat(4000)}${refusal}`)).toBeNull();
});
