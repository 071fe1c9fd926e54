import type { ServerProfile } from "./server-profile.ts";

/** A server whose profile differs from the defaults. */
interface KnownServer {
  /** Host names, or their ends (with a leading dot). */
  readonly hosts?: readonly string[];
  /** The owners in the server's model list (`owned_by`). */
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
 * The profile of a known server, by the host of its URL or the owner of its model (`owned_by` in its list); empty for other servers.
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
