import { type BodyDraft, callsOf, choicesOf, isAnswer, type Json, messagesOf } from "./body-draft.ts";
import { type BodyMutation, onObject } from "./on-body.ts";

const saying = (draft: BodyDraft) =>
  messagesOf(draft).filter(({ content }) => typeof content === "string" && content !== "");
const asking = (draft: BodyDraft) => (draft.request && isAnswer(draft) ? [draft.request] : []);
const named = (draft: BodyDraft) => typeof draft.request?.tool_choice === "object";
const forced = (draft: BodyDraft) => named(draft) || draft.request?.tool_choice === "required";
const functions = (draft: BodyDraft) => callsOf(draft).map((call) => call.function as Json);
/** Requests that are changed so that the answer no longer obeys them. */
const ofCalls = (draft: BodyDraft) => (callsOf(draft).length > 0 && draft.request ? [draft.request] : []);

/** Whole answers that do not do what was demanded, or show what a model writes. */
export const obedienceMutations: readonly BodyMutation[] = [
  onObject("body/stop", "a stop string in the text", saying, (message, draft) => {
    (draft.request as Json).stop = ["<stop>"];
    message.content = "a <stop> b";
  }),
  onObject("body/max-tokens", "too many tokens", asking, (request) => (request.max_completion_tokens = 3)),
  onObject(
    "body/required",
    "no call though one is required",
    (draft) => (forced(draft) ? choicesOf(draft) : []),
    (choice) => {
      delete (choice.message as Json).tool_calls;
      (choice.message as Json).content = "No.";
      choice.finish_reason = "stop";
    },
  ),
  onObject(
    "body/named",
    "another tool than the one named",
    (draft) => (named(draft) ? functions(draft) : []),
    (fn) => (fn.name = "get_weather"),
  ),
  onObject("body/no-tools", "a call though none is allowed", ofCalls, (request) => (request.tool_choice = "none")),
  onObject("body/no-tools", "a call without tools", ofCalls, (request) => delete request.tools),
  onObject(
    "body/parallel",
    "two calls though one is allowed",
    (draft) =>
      messagesOf(draft).some(({ tool_calls: calls }) => (calls as Json[] | undefined)?.[1]) ? ofCalls(draft) : [],
    (request) => (request.parallel_tool_calls = false),
  ),
  onObject("body/known-tool", "a tool that nobody declared", functions, (fn) => (fn.name = "rm_rf")),
  onObject(
    "body/json-text",
    "words where JSON was asked for",
    (draft) =>
      choicesOf(draft).filter(({ finish_reason: reason, message }) => reason === "stop" && isText(message as Json)),
    (choice, draft) => {
      (draft.request as Json).response_format = { type: "json_object" };
      (choice.message as Json).content = "Sure! Here is your JSON:";
    },
  ),
  onObject(
    "body/reasoning-in-content",
    "a thought in content",
    saying,
    (message) => (message.content = `<think>hm</think>${String(message.content)}`),
  ),
  onObject(
    "body/call-in-content",
    "the model's markup in content",
    (draft) =>
      Array.isArray(draft.request?.tools) && draft.request.tool_choice !== "none"
        ? choicesOf(draft).filter(({ finish_reason: reason }) => reason !== "length")
        : [],
    (choice) => ((choice.message as Json).content = '<tool_call>{"name":"f"}</tool_call>'),
  ),
  onObject(
    "body/special-token",
    "a special token at the end",
    saying,
    (message) => (message.content = `${String(message.content)}<|im_end|>`),
  ),
];

function isText(message: Json | undefined): boolean {
  return typeof message?.content === "string" && !("tool_calls" in message);
}
