import type { ServerProfile } from "./server-profile.ts";

/** A server that accepts more, or less, than the defaults of a profile say. */
interface KnownServer {
  /** Host names, and what they may end in. */
  readonly hosts?: readonly string[];
  /** Who owns the models in the server's list (`owned_by`). */
  readonly owners?: readonly string[];
  readonly profile: ServerProfile;
}

const openAi: ServerProfile = {
  instructionRole: "any",
  systemMessages: "anywhere",
  customTools: true,
  reasoningEffort: true,
  sharedMembers: true,
};

const knownServers: readonly KnownServer[] = [
  // https://platform.openai.com/docs/api-reference/chat/create: `max_tokens` is deprecated, and refused for models that reason.
  { hosts: ["api.openai.com"], profile: { ...openAi, maxTokensMember: "max_completion_tokens" } },
  { hosts: [".openai.azure.com"], profile: openAi },
  // https://openrouter.ai/docs/api-reference/parameters: `reasoning_effort`, passed on only to models that reason.
  { hosts: ["openrouter.ai"], profile: { reasoningEffort: true } },
  // vllm/entrypoints/openai/chat_completion/protocol.py of vllm-project/vllm: ChatCompletionRequest.
  { owners: ["vllm"], profile: { reasoningEffort: true, reasoningBudget: true } },
  // The server of ggml-org/llama.cpp ignores members that it does not know.
  { owners: ["llamacpp"], profile: { reasoningEffort: true } },
  // https://docs.mistral.ai/api/endpoint/chat has none of these members and refuses others (`extra_forbidden`); the order of messages and
  // the form of ids: src/mistral_common/protocol/instruct/validator.py of mistralai/mistral-common.
  {
    hosts: ["api.mistral.ai", "codestral.mistral.ai"],
    owners: ["mistralai"],
    profile: { streamOptions: false, reasoningHistory: false, callIds: "nine", userAfterTool: false },
  },
];

/**
 * What is known of a server by the host of its URL, or by whom its list names as the owner of the model. An empty profile: nothing.
 */
export function knownProfile(url: string, owner: string | undefined): ServerProfile {
  const host = URL.canParse(url) ? new URL(url).hostname : "";
  const known = knownServers.find(
    ({ hosts = [], owners = [] }) =>
      hosts.some((name) => (name.startsWith(".") ? host.endsWith(name) : host === name)) ||
      (owner !== undefined && owners.includes(owner)),
  );
  return known?.profile ?? {};
}
