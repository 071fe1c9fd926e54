import { type BodyDraft, errorsOf, type Json, modelsOf, usagesOf } from "./body-draft.ts";
import { type BodyMutation, onBodyText, onObject, spoiled } from "./on-body.ts";

const failed = (draft: BodyDraft) => draft.status >= 400;
const whole = (fits: (draft: BodyDraft) => boolean) => (draft: BodyDraft) => (fits(draft) ? [draft.value] : []);
const lists = whole(({ endpoint, status }) => endpoint === "models" && status === 200);
const calls = (draft: BodyDraft) =>
  draft.endpoint === "chat" && draft.status === 200 ? (draft.value.choices as Json[]) : [];

/** Errors, models, headers, and what only the specification says. */
export const otherMutations: readonly BodyMutation[] = [
  onBodyText("failure/json", "an HTML page", failed, () => "<html><body>502 Bad Gateway</body></html>"),
  onBodyText("failure/json", "plain text", failed, () => "Internal Server Error"),
  onBodyText("failure/json", "an empty body", failed, () => ""),
  onBodyText("text/surrogates", "half of an emoji in an error", failed, (body) =>
    body.replace(/"message": *"/, (begin) => `${begin}\\ud83d `),
  ),
  ...spoiled("failure/object", "error", whole(failed), []),
  onObject("failure/object", "FastAPI's detail", whole(failed), (value) => {
    value.detail = (value.error as Json).message;
    delete value.error;
  }),
  onObject("failure/members", "a text", whole(failed), (value) => (value.error = "failed")),
  onObject("failure/members", "null", whole(failed), (value) => (value.error = null)),
  ...spoiled("failure/members", "message", errorsOf, ["", null, 7]),
  ...spoiled("failure/members", "type", errorsOf, [null, 400]),
  ...spoiled("failure/members", "param", errorsOf, [7, ["x"]]),
  ...spoiled("failure/members", "code", errorsOf, [400, {}]),
  onObject(
    "failure/no-trace",
    "Python's trace",
    errorsOf,
    (error) => (error.message = 'Traceback (most recent call last):\n  File "/app/main.py", line 7, in <module>'),
  ),
  onObject(
    "failure/no-trace",
    "Node's trace",
    errorsOf,
    (error) => (error.message = "TypeError: x is not a function\n    at handle (/app/server.js:10:5)"),
  ),
  onObject("failure/status", "status 200", whole(failed), (_, draft) => (draft.status = 200)),
  ...spoiled("models/list", "data", lists, [null, {}]),
  ...spoiled("models/list", "object", lists, ["models", null]),
  onBodyText(
    "models/list",
    "a bare list",
    (draft) => lists(draft).length > 0,
    (body) => JSON.stringify((JSON.parse(body) as Json).data),
  ),
  ...spoiled("models/model", "id", modelsOf, ["", null, 7]),
  ...spoiled("models/model", "object", modelsOf, ["engine", null]),
  ...spoiled("models/model", "created", modelsOf, ["1700000000", null, 1.5]),
  ...spoiled("models/model", "owned_by", modelsOf, [null, 7]),
  onObject("models/unique", "a model twice", lists, (value) =>
    (value.data as Json[]).push({ ...(value.data as Json[])[0] }),
  ),
  onObject("headers/json", "text/plain", headed, (headers) => (headers["content-type"] = "text/plain")),
  onObject("headers/json", "no content type", headed, (headers) => delete headers["content-type"]),
  onObject("headers/request-id", "no x-request-id", headed, (headers) => delete headers["x-request-id"]),
  onObject("spec/body", "a tier that does not exist", calls, (_, draft) => (draft.value.service_tier = "gold")),
  onObject("spec/body", "a fingerprint of numbers", calls, (_, draft) => (draft.value.system_fingerprint = 7)),
  onObject("spec/body", "logprobs as a list", calls, (choice) => (choice.logprobs = [-0.5])),
  onObject("spec/body", "a refusal that is an object", calls, (choice) => ((choice.message as Json).refusal = {})),
  onObject("spec/body", "an embedding that is null", embedded, (embedding) => (embedding.embedding = null)),
  onObject("spec/body", "an embedding without its index", embedded, (embedding) => delete embedding.index),
  onObject("spec/body", "null details", usagesOf, (usage) => (usage.prompt_tokens_details = null)),
  onObject("spec/body", "details as numbers", usagesOf, (usage) => (usage.prompt_tokens_details = 3)),
];

function embedded(draft: BodyDraft): Json[] {
  return draft.endpoint === "embeddings" && draft.status === 200 ? (draft.value.data as Json[]) : [];
}

function headed(draft: BodyDraft): Json[] {
  return draft.headers ? [draft.headers] : [];
}
