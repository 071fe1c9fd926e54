import { isObject, type JsonObject } from "../../core/json.ts";
import { assistantParts, type Message } from "../../core/message.ts";
import type { Passthrough } from "../../core/request.ts";
import { MessageStates } from "../adapt/message-states.ts";
import type { NoteAdaptation, ServerProfile } from "../adapt/server-profile.ts";
import { isOn } from "../adapt/server-profile.ts";
import { standardBase64 } from "./proto-json.ts";
import { anySignature, signatureIn } from "./signatures.ts";

/** The second one in profile `lean` only. */
const modelRoles: ReadonlySet<unknown> = new Set(["model", "assistant"]);

const names = ["thoughtSignature", "thought_signature"] as const;

/**
 * Returns the client's contents with the signatures that the server has made: it refuses all others, and some servers demand one with the
 * first call of each step. Without sealed or changed states, a content is what the client has sent.
 */
export function withKnownStates(
  { body, sealed, hasOtherStates }: Passthrough,
  messages: readonly Message[],
  profile: ServerProfile,
  note: NoteAdaptation,
): unknown {
  const { contents } = body;
  const isDemanded = profile.stateDemand === "extra_content" && isOn(profile, "state-stand-in");
  const isChanged = sealed !== undefined || hasOtherStates === true;
  if (!Array.isArray(contents) || (!isChanged && !isDemanded)) return contents;
  const states = new MessageStates(messages);
  const calls = callSignatures(messages);
  return contents.map((content: unknown, at) => {
    if (!isObject(content) || !modelRoles.has(content["role"])) return content;
    const list = content["parts"];
    const parts = isObject(list) ? [list] : Array.isArray(list) ? list.filter(isObject) : [];
    let isFirst = true;
    const kept = parts.flatMap((part): JsonObject[] => {
      const { functionCall, function_call: other, ...rest } = part;
      const isCall = (functionCall ?? other) !== undefined;
      const sent = names.map((name) => part[name]).find((value) => typeof value === "string");
      const { thoughtSignature: _, thought_signature: __, ...plain } = part;
      if (isCall) {
        const id = isObject(functionCall ?? other) ? ((functionCall ?? other) as JsonObject)["id"] : undefined;
        const known = calls.next(id);
        let signature = isChanged ? known : sent;
        if (signature === undefined && isFirst && isDemanded) {
          note("state-stand-in", `contents[${at}].parts`);
          signature = anySignature;
        }
        isFirst = false;
        return [signature === undefined ? plain : { ...plain, thoughtSignature: signature }];
      }
      if (sent === undefined || !isChanged) return [part];
      const value = states.kept(
        typeof sent === "string" && sealed?.get(sent) === undefined ? standardBase64(sent) : sent,
        sealed,
      );
      if (value !== undefined) return [{ ...plain, thoughtSignature: value }];
      // A part that was nothing but a signature, or a thought of another model.
      const isEmpty = rest["text"] === "" || rest["thought"] === true || Object.keys(plain).length === 0;
      return isEmpty ? [] : [plain];
    });
    return { ...content, parts: kept };
  });
}

/** The signatures of a conversation's calls, in their order. */
function callSignatures(messages: readonly Message[]): { next(id: unknown): string | undefined } {
  const all = messages.flatMap((message) =>
    message.role === "assistant" ? assistantParts(message).filter((part) => part.type === "tool-call") : [],
  );
  let at = 0;
  return { next: () => signatureIn(all[at++]?.state) };
}
