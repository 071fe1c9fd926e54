import type { NameKind } from "./names.ts";

/** What Truewire does with some names of an SDK. */
export interface NameReason {
  readonly reason: string;
  /** Names, and beginnings of names up to a "-", or of paths up to a "/". */
  readonly names: readonly string[];
}

/** The words of these lines. */
const listed = (...lines: readonly string[]): readonly string[] => lines.flatMap((line) => line.split(" "));

const ofSdk = "of the SDK itself: in no request and no answer";
const notServed = "not served: 404";
const sent = "accepted, without effect";
const otherApi = "of an API that is not served";

/**
 * What Truewire does with the names of the vendors' SDKs that its routes, tables and files do not have. A test fails when one is missing, or when a
 * line is no longer true.
 */
export const nameReasons: Readonly<Record<string, Readonly<Partial<Record<NameKind, readonly NameReason[]>>>>> = {
  openai: {
    endpoint: [
      {
        reason: notServed,
        names: listed(
          "/agents /assistants /audio/speech /audio/voice_consents /audio/voices /batches /chatkit /containers",
          "/content_provenance_checks /decisions /evals /files /fine_tuning /images /live /moderations",
          "/organization /projects /realtime /safety /skills /threads /uploads /vaults /vector_stores /videos",
          "/webhook_endpoints /webhook_event_types",
        ),
      },
      {
        reason: "405: chat completions are not stored, and models are not deleted",
        names: ["GET /chat/completions", "POST /chat/completions/{id}", "DELETE /models/{id}"],
      },
    ],
    header: [
      { reason: sent, names: ["openai-beta", "x-stainless", "idempotency-key"] },
      { reason: "as a header of an upstream's answer, passed on", names: ["openai-organization", "openai-project"] },
      { reason: otherApi, names: ["openai-poll-after-ms"] },
    ],
    beta: [{ reason: otherApi, names: ["agents=v1", "assistants=v2", "chatkit_beta=v1", "realtime=v1"] }],
    model: [
      {
        reason: "chat, without reasoning",
        names: listed(
          "chatgpt-4o-latest computer-use-preview gpt-3.5-turbo gpt-4 gpt-4.1 gpt-4o gpt-5-chat-latest",
          "gpt-audio-mini",
        ),
      },
      {
        reason: "what it refuses is not public: `standsFor` refuses nothing",
        names: ["codex-mini-latest", "gpt-daybreak-blue-latest", "gpt-daybreak-red-latest", "gpt-rosalind-research"],
      },
    ],
    "error class": [
      {
        reason: ofSdk,
        names: listed(
          "OpenAIError LengthFinishReasonError ContentFilterFinishReasonError InvalidWebhookSignatureError",
          "SubjectTokenProviderError",
        ),
      },
    ],
  },
  "@anthropic-ai/sdk": {
    endpoint: [
      {
        reason: notServed,
        names: listed(
          "/agents /compliance /deployment_runs /deployments /dreams /environments /files /memory_stores",
          "/messages/batches /organizations /sessions /skills /tunnels /user_profiles /vaults",
        ),
      },
    ],
    header: [
      { reason: sent, names: ["x-stainless", "anthropic-dangerous-direct-browser-access"] },
      {
        reason: "of accounts and administration: accepted, without effect",
        names: [
          "anthropic-organization-id",
          "anthropic-user-profile-id",
          "anthropic-worker-id",
          "anthropic-workspace-id",
        ],
      },
    ],
    beta: [
      {
        reason: "what it adds is accepted without it",
        names: listed(
          "cache-diagnosis context-management dev-full-thinking extended-cache-ttl fallback-credit fast-mode",
          "interleaved-thinking mid-conversation-output-config mid-conversation-tool-changes",
          "model-context-window-exceeded output-128k output-300k pdfs prompt-caching server-side-fallback",
          "structured-outputs task-budgets thinking-token-count token-counting token-efficient-tools context-1m",
        ),
      },
      {
        reason: "of Anthropic's own tools: passed on to an upstream that speaks the API; refused or left out otherwise",
        names: listed("advisor-tool code-execution compact computer-use files-api mcp-client message-threads skills"),
      },
      {
        reason: otherApi,
        names: listed(
          "admin-user-sign-out agent-memory analytics-usage-cost ce-claude-code-managed-settings ce-plugins",
          "ce-user-management dreaming efs experimental-claude-tag google-managed-data-controls managed-agents",
          "mcp-tunnels message-batches spend-limit-reads telemetry-destinations user-profiles webhooks",
        ),
      },
    ],
    "error type": [{ reason: otherApi, names: ["memory_path_conflict_error", "memory_precondition_failed_error"] }],
    "error class": [{ reason: ofSdk, names: ["AnthropicError", "RetryableError"] }],
  },
};
