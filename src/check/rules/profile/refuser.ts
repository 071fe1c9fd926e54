import type { Exchange } from "../exchange.ts";
import { isObject } from "../../../core/json.ts";

/**
 * Who refuses a request at OpenAI, and so writes the error: the gateway what concerns keys, permissions, limits and models (which it
 * does not name as `param`), the application the rest, and everything on newer endpoints. Of an unknown path both have been seen.
 * Source: recorded errors.
 */
export function refuserOf({ request, response }: Exchange, value: unknown): "gateway" | "application" | "either" {
  const { status } = response;
  const error = isObject(value) && isObject(value.error) ? value.error : {};
  if (/\/(?:responses|moderations)\b/.test(request.path)) return "application";
  if (status === 401 || status === 403 || status === 429) return "gateway";
  if (status !== 404 || error.param !== null) return "application";
  return error.code === null ? "either" : "gateway";
}
