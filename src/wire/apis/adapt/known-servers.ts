import type { ServerProfile } from "./server-profile.ts";

/** A server whose profile differs from the defaults. */
interface KnownServer {
  /** As people call it. */
  readonly name: string;
  /** Host names, or their ends (with a leading dot). */
  readonly hosts?: readonly string[];
  /** The owners in the server's model list (`owned_by`). */
  readonly owners?: readonly string[];
  /** The creation time of every model in the server's list, 0 where it has none; with owners, both. */
  readonly created?: number;
  /** The owner of each model is the repository in its id. */
  readonly ownsByIds?: boolean;
  readonly profile: ServerProfile;
}

const openAi: ServerProfile = {
  instructionRole: "any",
  systemMessages: "anywhere",
  contentParts: true,
  toolNames: "short",
  customTools: true,
  anyArguments: true,
  reasoningEffort: true,
  sharedMembers: true,
  extensions: false,
  reasoningHistory: false,
  states: [],
  truncates: false,
  // https://platform.openai.com/docs/guides/tools; Azure: https://learn.microsoft.com/azure/ai-foundry/openai/how-to/responses.
  hostedTools: true,
  cacheReport: true,
};

const knownServers: readonly KnownServer[] = [
  // https://platform.openai.com/docs/api-reference/chat/create: `max_tokens` is deprecated, and refused for models that reason.
  { name: "OpenAI", hosts: ["api.openai.com"], profile: { ...openAi, maxTokensMember: "max_completion_tokens" } },
  // https://learn.microsoft.com/azure/ai-foundry/openai/reference: OpenAI's API. Older deployments refuse members (Azure/azure-sdk-for-net
  // #45719), which their refusals teach.
  { name: "Azure OpenAI", hosts: [".openai.azure.com", ".services.ai.azure.com"], profile: openAi },
  // https://docs.aws.amazon.com/bedrock/latest/userguide/inference-chat-completions.html refers to OpenAI's documentation, and its example
  // has a developer message; the models reason (model-parameters-openai.html).
  {
    name: "Amazon Bedrock",
    hosts: [".amazonaws.com", ".api.aws"],
    profile: { instructionRole: "any", reasoningEffort: true, truncates: false },
  },
  // https://openrouter.ai/docs/api-reference/parameters: `reasoning_effort`, passed on only to models that reason.
  // https://openrouter.ai/docs/guides/best-practices/reasoning-tokens, "Preserving reasoning": `reasoning`, `reasoning_details`.
  // https://openrouter.ai/docs/guides/best-practices/prompt-caching: marks, which are converted for other vendors' models; one for the whole
  // request, for Anthropic's. https://openrouter.ai/docs/api_reference/responses/web-search: server tools.
  {
    name: "OpenRouter",
    hosts: ["openrouter.ai"],
    profile: {
      hostedTools: true,
      contentParts: true,
      reasoningEffort: true,
      reasoningMember: "reasoning",
      states: ["reasoning_details"],
      cacheMarks: true,
      automaticCache: ["claude"],
      cacheReport: true,
    },
  },
  // https://docs.together.ai/reference/chat-completions-1: `max_tokens`. tensorzero/tensorzero#2952: "required" is an invalid request.
  {
    name: "Together",
    hosts: ["api.together.xyz", "api.together.ai"],
    profile: { maxTokensMember: "max_tokens", toolChoices: ["none", "auto", "named"], truncates: false },
  },
  // https://console.groq.com/docs/openai, "Currently Unsupported OpenAI Features": `logprobs`, `logit_bias`, `top_logprobs`,
  // `messages[].name`, and `n` above 1 are refused. Members of other APIs are refused, too: tashfeenahmed/freellmapi#1070
  // (`reasoning_content`), fanenr/chatbot#21 (`store`). https://console.groq.com/docs/tool-use/built-in-tools.
  {
    name: "Groq",
    hosts: ["api.groq.com"],
    profile: {
      hostedTools: true,
      logprobs: false,
      severalChoices: false,
      reasoningMember: "reasoning",
      states: [],
      drop: ["logit_bias", "store"],
      dropInMessages: ["name"],
      truncates: false,
    },
  },
  // https://api-docs.deepseek.com/api/create-chat-completion: `max_tokens`; `response_format` of type text or json_object
  // (ItzCrazyKns/Vane#969); contents are strings (lastmile-ai/mcp-agent#25); names of tools of up to 64 characters; no `n`;
  // `prompt_cache_hit_tokens`. https://api-docs.deepseek.com/guides/thinking_mode: messages with calls have `reasoning_content`.
  {
    name: "DeepSeek",
    hosts: ["api.deepseek.com"],
    owners: ["deepseek"],
    profile: {
      contentParts: false,
      toolNames: "short",
      reasoningDemand: "calls",
      maxTokensMember: "max_tokens",
      outputFormats: ["json_object"],
      images: false,
      severalChoices: false,
      truncates: false,
      cacheReport: true,
    },
  },
  // https://ai.google.dev/gemini-api/docs/openai: `reasoning_effort` for every model. MinLL/SkyrimNet-GamePlugin#77: members that its
  // endpoint for OpenAI's clients refuses; messages are read by the same parser, and have no member for reasoning.
  // https://ai.google.dev/gemini-api/docs/thought-signatures: Gemini 3 demands the signature of each step's first call, and takes the same
  // value in place of a missing one.
  {
    name: "Gemini",
    hosts: ["generativelanguage.googleapis.com", "aiplatform.googleapis.com", "-aiplatform.googleapis.com"],
    profile: {
      reasoningEffort: true,
      reasoningHistory: false,
      states: ["extra_content"],
      stateDemand: "extra_content",
      drop: ["frequency_penalty", "top_k", "reasoning"],
      truncates: false,
    },
  },
  // vllm/entrypoints/openai/chat_completion/protocol.py of vllm-project/vllm: ChatCompletionRequest; `/tokenize`. vllm-project/vllm#38488:
  // reasoning of earlier turns is read from `reasoning` only.
  {
    name: "vLLM",
    owners: ["vllm"],
    profile: {
      reasoningEffort: true,
      reasoningBudget: true,
      templateVariables: true,
      anyArguments: true,
      reasoningMember: "reasoning",
      reasoningHistory: true,
      encryptedReasoning: false,
      files: false,
      truncates: false,
      tokenizer: "/tokenize",
    },
  },
  // python/sglang/srt/entrypoints/openai/protocol.py of sgl-project/sglang: ModelCard, ChatCompletionRequest (`reasoning_effort`).
  { name: "SGLang", owners: ["sglang"], profile: { reasoningEffort: true, templateVariables: true } },
  // The server of ggml-org/llama.cpp ignores members that it does not know. common/chat.cpp: a choice of one function is refused. Its images
  // are read by stb_image (tools/mtmd/mtmd-helper.cpp), and long prompts are refused (exceed_context_size_error).
  {
    name: "llama-server",
    owners: ["llamacpp"],
    profile: {
      reasoningEffort: true,
      templateVariables: true,
      toolChoices: ["none", "auto", "required"],
      schemaCompiler: "llama.cpp",
      reasoningHistory: true,
      encryptedReasoning: false,
      files: false,
      imageTypes: ["image/jpeg", "image/png", "image/gif", "image/bmp"],
      truncates: false,
      tokenizer: "/tokenize",
    },
  },
  // src/transformers/cli/serving of huggingface/transformers: get_gen_models; see `readModelList`. It ignores these members, and
  // `response_format`: 5.19.0.
  {
    name: "Transformers serve",
    ownsByIds: true,
    profile: {
      toolChoices: ["auto"],
      severalChoices: false,
      maxTokensMember: "max_tokens",
      outputFormats: [],
    },
  },
  // llama_cpp/server of abetlen/llama-cpp-python: `owned_by`. The chat template of the model gets the tools, also with "none", and nothing reads the
  // calls that it writes; of the choices, that of one function is kept. `n` and `max_completion_tokens` are ignored, `json_schema` is refused: 0.3.36.
  {
    name: "llama-cpp-python",
    owners: ["me"],
    created: 0,
    profile: {
      contentParts: false,
      callsInText: true,
      toolChoices: ["auto", "named"],
      outputFormats: ["json_object"],
      maxTokensMember: "max_tokens",
      severalChoices: false,
    },
  },
  // openai/openai.go of ollama/ollama, ChatCompletionRequest: without `tool_choice`, `parallel_tool_calls`, `n` and
  // `max_completion_tokens`, which are ignored; decodeImageURL. A long prompt is cut at `num_ctx` (ollama/ollama#3839).
  {
    name: "Ollama",
    owners: ["library"],
    profile: {
      toolChoices: ["auto"],
      severalChoices: false,
      maxTokensMember: "max_tokens",
      files: false,
      imageUrls: false,
      imageTypes: ["image/jpeg", "image/png", "image/webp"],
      truncates: true,
    },
  },
  // lmstudio-ai/lmstudio-bug-tracker#670 (`tool_choice`) and #189 (`response_format`).
  {
    name: "LM Studio",
    owners: ["organization_owner"],
    profile: { toolChoices: ["none", "auto", "required"], outputFormats: ["json_schema"] },
  },
  // litellm/constants.py of BerriAI/litellm: DEFAULT_MODEL_CREATED_AT_TIME. It translates requests for another server, which may cost
  // money; its refusals name what that does not accept. https://docs.litellm.ai/docs/reasoning_content: `thinking_blocks`.
  // https://docs.litellm.ai/docs/completion/prompt_caching: marks. It sends consecutive messages of the assistant as one, in their order, and a
  // Claude refuses a turn with calls whose thinking comes after a text, as the Agents SDK sends it. It passes unknown members on, such as
  // `include_timings`, which Anthropic refuses. Both: 1.108.7.
  {
    name: "LiteLLM",
    created: 1_677_610_602,
    profile: {
      repeatedRoles: false,
      drop: ["include_timings"],
      anyArguments: true,
      states: ["extra_content", "provider_specific_fields", "reasoning_details", "thinking_blocks"],
      cacheMarks: true,
    },
  },
  // https://docs.mistral.ai/api/endpoint/chat has none of these members and refuses others (`extra_forbidden`): `logprobs`, `logit_bias`,
  // `user`, `store`, `service_tier`, `verbosity`, `max_completion_tokens` (editor-code-assistant/eca#231); `seed` is `random_seed`. The order
  // of messages and the form of ids: src/mistral_common/protocol/instruct/validator.py of mistralai/mistral-common. Members of messages:
  // nomtek/mistralai_client_dart#44. https://docs.mistral.ai/studio-api/conversations/reasoning: reasoning is a part of the content, also
  // in later turns; other members with reasoning are refused (co-l/openfox#220).
  {
    name: "Mistral",
    hosts: ["api.mistral.ai", "codestral.mistral.ai"],
    owners: ["mistralai"],
    profile: {
      streamOptions: false,
      reasoningMember: "content",
      states: [],
      callIds: "nine",
      userAfterTool: false,
      logprobs: false,
      maxTokensMember: "max_tokens",
      drop: ["logit_bias", "user", "store", "service_tier", "verbosity"],
      dropInMessages: ["name", "refusal"],
      rename: { seed: "random_seed" },
      truncates: false,
    },
  },
  // Kimi refuses "assistant tool call message" without `reasoning_content` while it thinks: https://platform.moonshot.ai/docs.
  {
    name: "Moonshot",
    hosts: ["api.moonshot.ai", "api.moonshot.cn", "api.kimi.com"],
    profile: { reasoningDemand: "calls", truncates: false },
  },
  // https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool; https://docs.x.ai/docs/guides/tools/overview.
  {
    name: "a vendor's own API with hosted tools",
    hosts: ["api.anthropic.com", "api.x.ai"],
    profile: { truncates: false, hostedTools: true },
  },
  // APIs that vendors host for their own models, at the hosts that their documentation names. They refuse a prompt that is too long, and
  // count tokens in ways of their own (https://platform.claude.com/docs/en/build-with-claude/context-windows).
  {
    name: "a vendor's own API",
    hosts: [
      "api.cohere.com",
      "api.cohere.ai",
      "api.z.ai",
      "open.bigmodel.cn",
      "api.cerebras.ai",
      "api.minimax.io",
      "api.minimaxi.com",
      "api.perplexity.ai",
      "api.ai21.com",
      "dashscope.aliyuncs.com",
      "dashscope-intl.aliyuncs.com",
      "api.xiaomimimo.com",
      ".googleapis.com",
    ],
    profile: { truncates: false },
  },
];

interface Listed {
  readonly id?: string;
  readonly ownedBy: string;
  readonly created: number;
}

function lists({ owners, created, ownsByIds }: Omit<KnownServer, "hosts">, model: Listed): boolean {
  if (ownsByIds === true) return model.ownedBy.includes("/") && model.id?.split(/[@:]/)[0] === model.ownedBy;
  if (owners === undefined && created === undefined) return false;
  return (owners?.includes(model.ownedBy) ?? true) && (created === undefined || model.created === created);
}

/**
 * The profile and the name of a known server, by the host of its URL or the entry of its model in its list; undefined for other servers.
 */
export function knownServer(
  url: string,
  listed: Listed | undefined,
): { readonly name: string; readonly profile: ServerProfile } | undefined {
  const host = hostOf(url);
  return knownServers.find(
    ({ hosts = [], ...server }) =>
      hosts.some((name) => (/^[.-]/.test(name) ? host.endsWith(name) : host === name)) ||
      (listed !== undefined && lists(server, listed)),
  );
}

/** The hosts of URLs that were parsed: each request asks for the same few. */
const hosts = new Map<string, string>();

function hostOf(url: string): string {
  let host = hosts.get(url);
  if (host === undefined) {
    host = URL.canParse(url) ? new URL(url).hostname : "";
    if (hosts.size >= 1000) hosts.clear();
    hosts.set(url, host);
  }
  return host;
}
