import type { Violation } from "../rule.ts";
import { isObject } from "../../../core/json.ts";
import { type BodyView, type Json } from "../view.ts";

/** Returns a violation at a member of a body: the first occurrence of its name, or the whole body if there is none. */
export function atName(view: BodyView, name: string, found: string): Violation {
  const { body } = view.exchange.response;
  const start = body.indexOf(`"${name}"`);
  return start < 0 ? { start: 0, end: body.length, found } : { start, end: start + name.length + 2, found };
}

/** Returns the body as an object, or `{}` if it is not one, which `body/json` reports. */
export function objectOf(view: BodyView): Json {
  return isObject(view.value) ? view.value : {};
}

export function bodyChoices(view: BodyView): readonly Json[] {
  const { choices } = objectOf(view);
  return Array.isArray(choices) ? choices.filter(isObject) : [];
}

export function messageOf(choice: Json): Json {
  return isObject(choice.message) ? choice.message : {};
}

/** Returns whether a body is a successful answer of chat or completions. A body that is not a JSON object is left to `body/json`. */
export function isAnswer(view: BodyView): boolean {
  const { endpoint, response } = view.exchange;
  return response.status === 200 && (endpoint === "chat" || endpoint === "completions") && isObject(view.value);
}

export function isChat(view: BodyView): boolean {
  return isAnswer(view) && view.exchange.endpoint === "chat";
}
