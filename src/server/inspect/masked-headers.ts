import type { Header } from "../../inspect/inspected-request.ts";
import type { Mask } from "../mask.ts";

/**
 * Names of headers that may carry a secret: a browser's WebSocket has no other place for a key than the names of its protocols. What tells of
 * a client's rates has similar names and no secret.
 */
const secret = /auth|key|token|secret|cookie|session|password|credential|sig|^sec-websocket-protocol$/i;
const harmless = /ratelimit/i;

/** Headers without secrets: the values of those with such names, and what the configuration calls secret in others. */
export function maskedHeaders(headers: readonly Header[], mask: Mask): Header[] {
  return headers.map(([name, value]) => {
    if (!secret.test(name) || harmless.test(name)) return [name, mask.text(value)];
    // Which kind of key it is, says nothing of the key.
    const [, scheme = ""] = /^(Bearer |Basic )/i.exec(value) ?? [];
    return [name, `${scheme}[key]`];
  });
}
