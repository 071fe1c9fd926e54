import { type BodyDraft, callsOf, choicesOf, type Json, messagesOf } from "./body-draft.ts";
import { type BodyMutation, onObject, spoiled } from "./on-body.ts";

const functions = (draft: BodyDraft) => callsOf(draft).map((call) => call.function as Json);
const callsIn = (message: Json) => (message.tool_calls ?? []) as Json[];
const calling = (draft: BodyDraft) => messagesOf(draft).filter((message) => callsIn(message).length > 0);
const silent = (draft: BodyDraft) => messagesOf(draft).filter((message) => callsIn(message).length === 0);
const named = (draft: BodyDraft) => typeof draft.request?.tool_choice === "object";

/** Tool calls of whole answers. */
export const callMutations: readonly BodyMutation[] = [
  ...spoiled("body/call-shape", "id", callsOf, ["", null, 7]),
  ...spoiled("body/call-shape", "type", callsOf, [null, "tool"]),
  ...spoiled("body/call-shape", "function", callsOf, [null, "f"]),
  ...spoiled("body/call-shape", "name", functions, ["", null]),
  ...spoiled("body/call-shape", "arguments", functions, [{ a: 1 }, null]),
  ...["", "{", "[]", '"x"', "{}{}", "{'a': 1}"].map((text) =>
    onObject("body/call-json", `arguments ${JSON.stringify(text)}`, functions, (fn) => (fn.arguments = text)),
  ),
  onObject("body/call-index", "an index", callsOf, (call) => (call.index = 0)),
  onObject(
    "body/call-ids",
    "two calls with one id",
    (draft) => calling(draft).filter((message) => callsIn(message).length > 1),
    (message) => {
      const [one, two] = callsIn(message);
      if (one && two) two.id = one.id;
    },
  ),
  onObject("body/call-ids", "a call twice", calling, (message) => callsIn(message).push({ ...callsIn(message)[0] })),
  onObject("body/call-null", "null tool_calls", silent, (message) => (message.tool_calls = null)),
  onObject("body/call-null", "empty tool_calls", silent, (message) => (message.tool_calls = [])),
  onObject(
    "body/call-finish",
    "stop next to calls",
    (draft) => (named(draft) ? [] : choicesOf(draft).filter(({ finish_reason: reason }) => reason === "tool_calls")),
    (choice) => (choice.finish_reason = "stop"),
  ),
  onObject(
    "body/call-finish",
    "tool_calls without a call",
    (draft) =>
      (draft.endpoint === "chat" ? choicesOf(draft) : []).filter(
        ({ message }) => callsIn(message as Json).length === 0,
      ),
    (choice) => (choice.finish_reason = "tool_calls"),
  ),
  onObject(
    "body/call-finish",
    "the calls are lost",
    (draft) => choicesOf(draft).filter(({ finish_reason: reason }) => reason === "tool_calls"),
    (choice) => delete (choice.message as Json).tool_calls,
  ),
];
