import { missingSignature, signatureStandIns } from "../../src/wire/apis/gemini/turn-rules.ts";
import { callMessages, callsOfMessage, listOf, objectOf, signer } from "./chat-server.ts";
import type { ChatServer, Json, Refusal } from "./chat-server.ts";
import type { TaskCall } from "./task.ts";

/*
 * Gemini 3 at its endpoint for OpenAI's clients. Each step has a signature in `extra_content.google.thought_signature` of its first call,
 * also a step without reasoning that clients see. It is demanded in all steps since the last text of the user, and verified wherever it is.
 * Sources: https://ai.google.dev/gemini-api/docs/openai (members) and thought-signatures (where they are, what is validated, the sentinels
 * for calls of other models); the form of errors, a list of one with a line for each member: MinLL/SkyrimNet-GamePlugin#77 and
 * Alishahryar1/free-claude-code#542; the words: earendil-works/pi#260, code_puppy#165 (missing), google-gemini/gemini-cli#13467 (corrupted).
 */

const members = [
  "model",
  "messages",
  "temperature",
  "top_p",
  "max_tokens",
  "max_completion_tokens",
  "stream",
  "stream_options",
  "stop",
  "n",
  "response_format",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "reasoning_effort",
  "extra_body",
];

const messageMembers: Readonly<Record<string, readonly string[]>> = {
  system: ["role", "content", "name"],
  developer: ["role", "content", "name"],
  user: ["role", "content", "name"],
  assistant: ["role", "content", "name", "tool_calls", "refusal", "extra_content"],
  tool: ["role", "content", "tool_call_id", "name"],
};
const callMembers = ["id", "type", "function", "extra_content", "index"];

/** A server with a key of its own. */
export function gemini(model = "gemini-3-pro-preview"): ChatServer {
  const { sign, isValid } = signer("gemini");
  // Arguments are a Struct, whose members have no order.
  const contentOf = ({ name, input }: TaskCall) => [name, JSON.stringify(input, Object.keys(input).toSorted())];

  const refusal = (body: Json): Refusal | undefined => {
    const unknown = [
      ...unknownMembers(body, members),
      ...listOf(body["messages"]).flatMap((message, at) => [
        ...unknownMembers(message, messageMembers[String(message["role"])] ?? [], ` at 'messages[${at}]'`),
        ...listOf(message["tool_calls"]).flatMap((call, index) =>
          unknownMembers(call, callMembers, ` at 'messages[${at}].tool_calls[${index}]'`),
        ),
      ]),
    ];
    if (unknown.length > 0) return invalid(unknown.join("\n"), unknown);
    for (const { message, at, since } of callMessages(body)) {
      const calls = callsOfMessage(message);
      for (const [index, call] of listOf(message["tool_calls"]).entries()) {
        const google = objectOf(objectOf(call["extra_content"])["google"]);
        const signature = google["thought_signature"];
        const made = calls[index];
        if (signature === undefined) {
          if (since && index === 0) return invalid(missingSignature(String(made?.name), at));
        } else if (!signatureStandIns.has(String(signature)) && !(made && isValid(signature, ...contentOf(made))))
          return invalid("Corrupted thought signature.");
      }
    }
    return undefined;
  };

  return {
    name: "Gemini",
    model,
    owner: "google",
    refusal,
    wholeCalls: true,
    callMembers: (call, index) =>
      index > 0 ? {} : { extra_content: { google: { thought_signature: sign(...contentOf(call)) } } },
  };
}

function unknownMembers(object: Json, known: readonly string[], place = ""): string[] {
  return Object.keys(object)
    .filter((name) => !known.includes(name))
    .map((name) => `Invalid JSON payload received. Unknown name "${name}"${place}: Cannot find field.`);
}

function invalid(message: string, violations: readonly string[] = []): Refusal {
  const fieldViolations = violations.map((description) => ({ description }));
  const details = [{ "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations }];
  const error = { code: 400, message, status: "INVALID_ARGUMENT", ...(violations.length > 0 && { details }) };
  return { status: 400, body: [{ error }] };
}
