import { isObject } from "../../core/json.ts";

/** The message of an error object, where a body or an event of the API has one. */
export function messageIn(body: unknown): string | undefined {
  const error = isObject(body) ? body["error"] : undefined;
  return isObject(error) && typeof error["message"] === "string" ? error["message"] : undefined;
}
