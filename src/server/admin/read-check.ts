import { invalidRequest } from "../../core/failure.ts";
import type { FailureError } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import type { AskedCheck } from "./checker.ts";

/** Reads the body of `POST /admin/check`. Throws `FailureError`, which never quotes the key. */
export function readCheck(body: unknown): AskedCheck {
  if (!isObject(body)) throw invalidRequest('Expected a body such as {"url": "http://127.0.0.1:11434/v1"}.');
  const { url, key, model, only, profile } = body;
  if (typeof url !== "string" || !isBaseUrl(url))
    throw refused("url", "the base URL of an API, such as http://127.0.0.1:11434/v1, without a query");
  // What no header can carry (RFC 9110, section 5.5).
  if (key !== undefined && (typeof key !== "string" || !/^[\x21-\x7e]{1,4096}$/.test(key)))
    throw refused("key", "an API key: ASCII without spaces");
  if (model !== undefined && typeof model !== "string") throw refused("model", "the name of a model");
  if (only !== undefined && !isWords(only)) throw refused("only", "a list of words, such as chat or text");
  if (profile !== undefined && profile !== "lean" && profile !== "exact") throw refused("profile", "lean or exact");
  return {
    url,
    ...(key !== undefined && { key }),
    ...(model !== undefined && { model }),
    ...(only !== undefined && { only }),
    ...(profile !== undefined && { profile }),
  };
}

/** Paths are put behind it, so it may have no query; and a name and password in it would be shown with it. */
function isBaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return /^https?:$/.test(protocol) && username === "" && password === "" && !/[?#\s]/.test(text);
}

function isWords(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === "string" && word !== "");
}

function refused(name: string, expected: string): FailureError {
  return invalidRequest(`'${name}': expected ${expected}.`, name);
}
