import { judge } from "../../../../src/judge/check/rules/judge.ts";
import { legalMessageBody } from "../../legal/messages.ts";
import { seeded } from "../../random.ts";
import { type BodyDraft, bodyDraftOf, bodyExchangeOf, type Json } from "../body/body-draft.ts";
import { type BodyMutation, onBodyText, onObject, spoiled } from "../body/on-body.ts";
import type { IllegalChange } from "../mutation.ts";

const failed = (draft: BodyDraft) => draft.status >= 400;
const failures = (draft: BodyDraft) => (failed(draft) ? [draft.value] : []);
const errors = (draft: BodyDraft) => (failed(draft) ? [draft.value.error as Json] : []);
const answers = (endpoint: string) => (draft: BodyDraft) =>
  draft.endpoint === endpoint && draft.status === 200 ? [draft.value] : [];
const lists = answers("anthropic-models");
const models = (draft: BodyDraft) => [
  ...lists(draft).flatMap(({ data }) => data as Json[]),
  ...answers("anthropic-model")(draft),
];
const counts = answers("message-tokens");
const headed = (draft: BodyDraft) => (draft.headers ? [draft.headers] : []);

const mutations: readonly BodyMutation[] = [
  onBodyText(
    "body/json",
    "a message that is cut",
    (draft) => !failed(draft),
    (body) => body.slice(0, body.length / 2),
  ),
  onBodyText("failure/json", "an HTML page for Anthropic's error", failed, () => "<html>502 Bad Gateway</html>"),
  onObject("failure/status", "Anthropic's error with status 200", failures, (_, draft) => (draft.status = 200)),
  ...spoiled("messages/failure-shape", "type", failures, [null, "failure"]),
  ...spoiled("messages/failure-shape", "message", errors, ["", null]),
  ...spoiled("messages/failure-shape", "error", failures, [null, "failed"]),
  onObject("messages/failure-shape", "OpenAI's form", failures, (value) => {
    delete value.type;
    delete value.request_id;
    Object.assign(value.error as Json, { param: null, code: null });
  }),
  onObject("messages/failure-type", "OpenAI's type", errors, (error) => (error.type = "server_error")),
  onObject("messages/failure-type", "the type of another status", errors, (error, draft) => {
    error.type = draft.status === 429 ? "overloaded_error" : "rate_limit_error";
  }),
  onObject("messages/failure-type", "another status", failures, (_, draft) => (draft.status = 418)),
  onObject(
    "messages/failure-overflow",
    "OpenAI's words",
    errors,
    (error) =>
      (error.message = "This model's maximum context length is 2048 tokens. However, you requested 9000 tokens."),
  ),
  onObject(
    "messages/failure-overflow",
    "llama.cpp's words",
    errors,
    (error) => (error.message = "the request exceeds the available context size, try increasing it"),
  ),
  ...spoiled("messages/failure-request-id", "request_id", failures, [7]),
  onObject("messages/request-id", "no request-id", headed, (headers) => delete headers["request-id"]),
  ...spoiled("messages/count", "input_tokens", counts, [0, "9", null, 1.5, -1]),
  ...spoiled("messages/models", "data", lists, [null, {}]),
  ...spoiled("messages/models", "has_more", lists, [null, "false"]),
  ...spoiled("messages/models", "first_id", lists, [null, "x"]),
  ...spoiled("messages/models", "last_id", lists, [null, "x"]),
  ...spoiled("messages/model", "id", models, ["", null]),
  ...spoiled("messages/model", "type", models, [null, "engine"]),
  ...spoiled("messages/model", "display_name", models, [null]),
  ...spoiled("messages/model", "created_at", models, [1_700_000_000, null, "yesterday"]),
];

/** `demands`: what the body was written in is demanded of it. */
export function illegalMessageBody({ rule, name, apply }: BodyMutation, demands: boolean): IllegalChange {
  return {
    rule,
    name,
    make(seed) {
      const { exchange, profile } = legalMessageBody(seed);
      const draft = bodyDraftOf(exchange);
      const before = JSON.stringify(bodyExchangeOf(draft));
      if (!apply(draft, seeded(seed))) return undefined;
      const mutated = bodyExchangeOf(draft);
      return JSON.stringify(mutated) === before
        ? undefined
        : judge(mutated, demands ? profile.name : undefined).findings;
    },
  };
}

/** Bodies of the Messages API that are no message. */
export const bodyMutations: readonly IllegalChange[] = mutations.map((mutation) => illegalMessageBody(mutation, false));
