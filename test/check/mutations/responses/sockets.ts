import { judge } from "../../../../src/judge/check/rules/judge.ts";
import { legalResponseSocket } from "../../legal/responses.ts";
import { refusedBySocket } from "../../legal/stored-responses.ts";
import { between, seeded } from "../../random.ts";
import type { IllegalChange, LegalChange } from "../mutation.ts";
import { withMembers } from "./stored-story.ts";
import type { Json } from "./stream-draft.ts";

/** Changes the messages of an answer by WebSocket. `change` returns undefined where it cannot be made. */
function onSocket(
  rule: string,
  name: string,
  change: (messages: readonly string[], random: () => number) => readonly string[] | undefined,
): IllegalChange {
  return {
    rule,
    name,
    make(seed) {
      const { exchange } = legalResponseSocket(seed);
      const messages = change(exchange.response.body.split("\n\n").slice(0, -1), seeded(seed));
      const body = messages?.map((message) => `${message}\n\n`).join("");
      return body === undefined ? undefined : judge({ ...exchange, response: { ...exchange.response, body } }).findings;
    },
  };
}

/** Answers by WebSocket. */
export const socketMutations: readonly IllegalChange[] = [
  onSocket("socket/json", "[DONE]", (messages) => [...messages, "data: [DONE]"]),
  onSocket("socket/json", "a binary message", ([first = "", ...rest]) => [first, ": a binary message", ...rest]),
  onSocket("socket/json", "a part of a message", (messages, random) =>
    messages.with(between(0, messages.length - 1, random), "data: {"),
  ),
  onSocket("responses/created-first", "by WebSocket", (messages) => messages.slice(1)),
  onSocket("responses/last-event", "by WebSocket", (messages) => messages.slice(0, 3)),
  onSocket("responses/sequence", "by WebSocket: an event is lost", (messages) =>
    messages.length > 4 && !messages[4]?.includes('"type":"error"') ? messages.toSpliced(3, 1) : undefined,
  ),
  onSocket("responses/usage", "by WebSocket", (messages) => {
    const end = messages.at(-1) ?? "";
    return end.includes("response.completed")
      ? messages.with(messages.length - 1, end.replace(/"usage":\{/, '"used":{'))
      : undefined;
  }),
  ...[
    ["no status", { status: undefined }],
    ["a status as text", { status: "400" }],
    ["no error", { error: undefined }],
    ["an error that is text", { error: "not found" }],
    ["a code that is a number", { error: { message: "x", code: 400 } }],
  ].map(([name, members]): IllegalChange => ({
    rule: "socket/error",
    name: String(name),
    make: () => judge(withMembers(refusedBySocket("x", "Not found."), members as Json)).findings,
  })),
];

export const legalSockets: readonly LegalChange[] = [
  {
    name: "a response by WebSocket, in its profile",
    make(seed) {
      const { exchange, profile } = legalResponseSocket(seed);
      return judge(exchange, profile.name).findings;
    },
  },
];
