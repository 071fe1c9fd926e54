import { isObject, nonEmpty, type JsonObject } from "../../core/json.ts";
import type { CallState, TurnState } from "../../core/turn-state.ts";
import type { BodyCounter } from "../body-counter.ts";
import { base64 } from "../base64-json.ts";
import type { SealedReasoning, TurnSeal } from "../turn-seal.ts";
import { callStandIns } from "../adapt/call-stand-ins.ts";
import { standardBase64 } from "./proto-json.ts";

/*
 * Signatures of parts. Google's own are opaque; clients decode and encode them (google-genai for Python writes the alphabet for URLs). The
 * state of a call has the form of Google's chat API, in which the same signature is a member of the call.
 * Source: https://ai.google.dev/gemini-api/docs/thought-signatures.
 */

/** What stands in for a signature. Clients write it, too (google-gemini/gemini-cli, packages/core/src/core/geminiChat.ts). */
export const anySignature: string = callStandIns.extra_content.google.thought_signature;

/** The beginning of a sealed value, in base 64. */
const sealedStart = btoa("truewire.");

/** A signature that this server has sealed, with its content; or one of Google's; undefined: a stand-in, or no signature. */
export function openSignature(
  signature: string,
  seal: TurnSeal,
  counter: BodyCounter,
): { readonly sealed: SealedReasoning } | { readonly raw: string } | undefined {
  if (signature === anySignature) return undefined;
  const plain = standardBase64(signature);
  if (plain?.startsWith(sealedStart) !== true) return { raw: plain ?? signature };
  const sealed = seal.open(atob(plain), counter);
  return sealed && { sealed };
}

export function sealSignature(content: SealedReasoning, seal: TurnSeal): string {
  return base64(new TextEncoder().encode(seal.seal(content)));
}

export function callState(signature: string, source?: string): CallState {
  return {
    kind: "call",
    value: { extra_content: { google: { thought_signature: signature } } },
    ...(source !== undefined && { source }),
  };
}

/** Google's signature in the state of a call; undefined: the state is of another server. */
export function signatureIn(state: TurnState | undefined): string | undefined {
  if (state?.kind === "part") return state.value;
  if (state?.kind !== "call") return undefined;
  const google: JsonObject = isObject(state.value["extra_content"]) ? state.value["extra_content"] : {};
  return isObject(google["google"]) ? nonEmpty(google["google"]["thought_signature"]) : undefined;
}
