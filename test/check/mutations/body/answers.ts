import { type BodyDraft, choicesOf, isAnswer, type Json, messagesOf, usagesOf } from "./body-draft.ts";
import { type BodyMutation, onBodyText, onObject, spoiled } from "./on-body.ts";

const answers = (draft: BodyDraft) => (isAnswer(draft) ? [draft.value] : []);
const texts = (draft: BodyDraft) => (draft.endpoint === "completions" ? choicesOf(draft) : []);
const chats = (draft: BodyDraft) => (draft.endpoint === "chat" ? choicesOf(draft) : []);
const withTokens = (draft: BodyDraft) =>
  chats(draft)
    .map((choice) => (choice.logprobs as Json | null)?.content)
    .filter((list) => Array.isArray(list) && list.length > 0)
    .map((list) => (list as Json[])[0] as Json);
const saying = (draft: BodyDraft) =>
  chats(draft).filter(({ logprobs, message }) => logprobs !== null && Boolean((message as Json).content));

/** Whole answers of both endpoints that generate. */
export const answerMutations: readonly BodyMutation[] = [
  onBodyText("body/json", "NaN for a number", isAnswer, (body) => body.replace(/"created": ?\d+/, '"created":NaN')),
  onBodyText("body/json", "infinity for a log probability", isSaid, (body) =>
    body.replace(/"logprob": ?-?[\d.]+/, '"logprob":-Infinity'),
  ),
  onBodyText("body/json", "a list of models that is cut", isList, (body) => body.slice(0, -2)),
  onBodyText("body/json", "embeddings with NaN", isEmbedded, (body) => body.replace("0.25", "NaN")),
  onBodyText("body/json", "cut in the middle", isAnswer, (body) => body.slice(0, body.length / 2)),
  onBodyText("body/json", "an empty body", isAnswer, () => ""),
  onBodyText("body/json", "a list around it", isAnswer, (body) => `[${body}]`),
  onBodyText("body/json", "said twice", isAnswer, (body) => body + body),
  onBodyText("body/json", "a stream", isAnswer, (body) => `data: ${body.trim()}\n\ndata: [DONE]\n\n`),
  ...spoiled("body/id", "id", answers, ["", null, 7]),
  onObject("body/id-prefix", "an id of another form", answers, (value) => (value.id = "gen-1")),
  ...spoiled("body/object", "object", answers, ["chat.completion.chunk", null, "completion"]),
  ...spoiled("body/created", "created", answers, ["1700000000", 1_700_000_000.5, null, 1_700_000_000_000, -1]),
  ...spoiled("body/model", "model", answers, ["", null, 7]),
  ...spoiled("body/choices", "choices", answers, [null, [], {}, ["text"]]),
  ...spoiled("body/index", "index", choicesOf, ["0", null, 7, 0.5]),
  onObject("body/index", "all choices have the same index", several, (value) => {
    for (const choice of value.choices as Json[]) choice.index = 0;
  }),
  onObject("body/index", "choices out of order", several, (value) => (value.choices as Json[]).reverse()),
  onObject("body/n", "one choice is missing", several, (value) => (value.choices as Json[]).pop()),
  onObject("body/n", "one choice too many", answers, (value) => {
    const choices = value.choices as Json[];
    choices.push({ ...choices[0], index: choices.length });
  }),
  ...spoiled("body/message", "message", chats, [null, "text", { content: "x" }, { role: "model", content: "x" }]),
  ...spoiled("body/message", "role", messagesOf, ["user", null]),
  ...spoiled("body/content", "content", messagesOf, [7, ["x"], { text: "x" }]),
  ...spoiled("body/text", "text", texts, [null, 7, ["x"]]),
  ...spoiled("body/finish", "finish_reason", choicesOf, [null, "eos", "", "end_turn", 1]),
  ...spoiled("body/usage", "usage", answers, [null, 27]),
  ...spoiled("body/usage-type", "prompt_tokens", usagesOf, ["7", -1, 1.5]),
  ...spoiled("body/usage-type", "total_tokens", usagesOf, ["7", -1, 1.5]),
  onObject("body/usage-sum", "a wrong total", usagesOf, (usage) => (usage.total_tokens = 1)),
  onObject("body/usage-sum", "choices counted once", usagesOf, (usage) => (usage.completion_tokens = 0)),
  onObject(
    "body/usage-details",
    "more cached than there are",
    usagesOf,
    (usage) => (usage.prompt_tokens_details = { cached_tokens: 99 }),
  ),
  onObject(
    "body/usage-details",
    "more thought than said",
    usagesOf,
    (usage) => (usage.completion_tokens_details = { reasoning_tokens: 9999 }),
  ),
  onObject("body/logprobs", "none though asked for", saying, (choice) => (choice.logprobs = null)),
  ...["token", "logprob", "bytes", "top_logprobs"].map((member) =>
    onObject("body/logprobs", `a token without ${member}`, withTokens, (token) => delete token[member]),
  ),
  onObject("body/logprobs", "a probability for its logarithm", withTokens, (token) => (token.logprob = 0.7)),
  onObject("body/logprobs-text", "the thought's tokens before the text's", saying, (choice) =>
    tokensOf(choice).unshift({ token: "Hm. ", logprob: -1, bytes: null, top_logprobs: [] }),
  ),
  onObject("body/logprobs-text", "a token left out", saying, (choice) => tokensOf(choice).pop()),
  onObject("body/token-lists", "a token more than log probabilities", scored, ({ logprobs }) =>
    ((logprobs as Json).tokens as string[]).push("x"),
  ),
  onObject(
    "body/token-lists",
    "a probability for its logarithm",
    scored,
    ({ logprobs }) => (((logprobs as Json).token_logprobs as number[])[0] = 0.7),
  ),
  onObject("body/token-lists", "no offsets", scored, ({ logprobs }) => delete (logprobs as Json).text_offset),
  onObject("body/token-lists", "alternatives of a token that has no log probability", scored, ({ logprobs }) => {
    ((logprobs as Json).token_logprobs as unknown[])[0] = null;
    ((logprobs as Json).top_logprobs as unknown[])[0] = { Once: null };
  }),
  onObject("body/known-members", "timings", answers, (value) => (value.timings = { predicted_ms: 12 })),
  onObject("body/known-members", "a member of a message", messagesOf, (message) => (message.thoughts = "Hm.")),
];

function isSaid(draft: BodyDraft): boolean {
  return withTokens(draft).length > 0;
}

function isList({ endpoint, status }: BodyDraft): boolean {
  return endpoint === "models" && status === 200;
}

function isEmbedded({ endpoint, status }: BodyDraft): boolean {
  return endpoint === "embeddings" && status === 200;
}

function tokensOf(choice: Json): Json[] {
  return (choice.logprobs as Json).content as Json[];
}

/** Choices of completions with log probabilities. */
function scored(draft: BodyDraft): Json[] {
  return texts(draft).filter(({ logprobs }) => logprobs !== null && ((logprobs as Json).tokens as string[]).length > 0);
}

function several(draft: BodyDraft): Json[] {
  return answers(draft).filter((value) => (value.choices as Json[]).length > 1);
}
