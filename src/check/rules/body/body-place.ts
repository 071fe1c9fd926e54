import type { Offence } from "../rule.ts";
import { isObject } from "../../../core/json.ts";
import { type BodyView, type Json } from "../view.ts";

/** An offence at a member of a body: where its name first stands, else the whole body. */
export function atName(view: BodyView, name: string, found: string): Offence {
  const { body } = view.exchange.response;
  const start = body.indexOf(`"${name}"`);
  return start < 0 ? { start: 0, end: body.length, found } : { start, end: start + name.length + 2, found };
}

/** The body as an object; {} where it is not one, which `body/json` reports. */
export function objectOf(view: BodyView): Json {
  return isObject(view.value) ? view.value : {};
}

export function choicesOf(view: BodyView): readonly Json[] {
  const { choices } = objectOf(view);
  return Array.isArray(choices) ? choices.filter(isObject) : [];
}

export function messageOf(choice: Json): Json {
  return isObject(choice.message) ? choice.message : {};
}

/** A successful answer of an endpoint that generates. A body that is not a JSON object can show only that, and `body/json` reports it. */
export function isAnswer(view: BodyView): boolean {
  const { endpoint, response } = view.exchange;
  return response.status === 200 && (endpoint === "chat" || endpoint === "completions") && isObject(view.value);
}

export function isChat(view: BodyView): boolean {
  return isAnswer(view) && view.exchange.endpoint === "chat";
}
