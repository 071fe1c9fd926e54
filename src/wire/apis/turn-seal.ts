import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import type { TurnState } from "../core/turn-state.ts";
import { base64, readBase64Json } from "./base64-json.ts";
import { BodyCounter } from "./body-counter.ts";

/*
 * Clients keep some values of an answer unread and send them back: signatures of reasoning, encrypted reasoning. This server puts what the
 * next turn needs, and no member of the client's API can hold, into such a value. The value is authenticated, so that a client can neither
 * change it nor use one of another client. It is not encrypted: its client has been sent the content anyway.
 */

/** What a sealed value contains. All members are optional. */
export interface SealedReasoning {
  /** The text of the reasoning, where the client does not get it. */
  readonly text?: string;
  readonly summary?: readonly string[];
  /** The id of the source's reasoning item. */
  readonly id?: string;
  readonly state?: TurnState;
  /** The call that `state` belongs to. Absent: `state` belongs to the reasoning. */
  readonly callId?: string;
  /** What the model has read of a hosted call, whose item does not show it. `id`: of the item; `callId`: of the call. */
  readonly result?: { readonly id: string; readonly callId?: string; readonly text: string };
}

/** Seals values for one owner, and opens those that were sealed for it. */
export interface TurnSeal {
  seal(content: SealedReasoning): string;
  /**
   * Returns the content of a sealed value, `{}` if it is damaged or was sealed for another owner or by another installation, and `undefined`
   * for a value that no Truewire has sealed. `counter` limits the JSON of the whole request.
   */
  open(text: string, counter?: BodyCounter): SealedReasoning | undefined;
}

const prefix = "truewire.2.";

/** The maximum length of a value that is opened, in characters: reading a longer one would hold up other requests. */
const maxLength = 4 * 1024 * 1024;

/** The length of the authentication code in bytes: 2^128 attempts to forge one. */
const codeLength = 16;

/**
 * Returns the seal of an owner. A value has the form `truewire.2.CODE.CONTENT`, or `truewire.2.CODE.CONTENT.VALUE` for a state whose value is
 * text in base 64, which is not encoded twice. `key`: of the installation, at least 32 bytes.
 */
export function turnSeal(key: Uint8Array, owner: string): TurnSeal {
  const codeOf = (body: string): string => {
    const code = hmac(sha256, key, new TextEncoder().encode(`${owner}\0${body}`));
    return base64url(code.subarray(0, codeLength));
  };
  return {
    seal(content) {
      const { state } = content;
      const isPlain = typeof state?.value === "string" && /^[\w+/=-]+$/.test(state.value);
      const rest = isPlain ? { ...content, state: { ...state, value: "" } } : content;
      const text = base64url(new TextEncoder().encode(JSON.stringify(rest)));
      const body = isPlain ? `${text}.${String(state.value)}` : text;
      return `${prefix}${codeOf(body)}.${body}`;
    },
    open(sealed, counter = new BodyCounter()) {
      // What a Truewire has sealed, of any version.
      if (!sealed.startsWith("truewire.")) return undefined;
      if (sealed.length > maxLength) return {};
      const [code = "", text = "", value, ...others] = sealed.slice(prefix.length).split(".", 4);
      const body = value === undefined ? text : `${text}.${value}`;
      if (!sealed.startsWith(prefix) || others.length > 0 || !isEqual(code, codeOf(body))) return {};
      const content = readBase64Json(text.replaceAll("-", "+").replaceAll("_", "/"), counter);
      if (typeof content !== "object" || content === null) return {};
      // The code proves that this function's counterpart has written the content.
      const { state, ...rest } = content as SealedReasoning;
      if (!state) return rest;
      return { ...rest, state: value === undefined ? state : ({ ...state, value } as TurnState) };
    },
  };
}

/** Compares two codes in a time that does not depend on where they differ. */
function isEqual(one: string, other: string): boolean {
  let difference = one.length ^ other.length;
  for (let at = 0; at < other.length; at++) difference |= one.charCodeAt(at) ^ other.charCodeAt(at);
  return difference === 0;
}

export function base64url(bytes: Uint8Array): string {
  return base64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/**
 * For answers that are read and written outside of a server, such as those of the library. Its key is public, so it detects damage and not
 * forgery.
 */
export const openSeal: TurnSeal = turnSeal(new Uint8Array(32), "");
