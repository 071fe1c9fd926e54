import type { Exchange } from "../rules/exchange.ts";
import { isObject } from "../../../wire/core/json.ts";
import { parsedJson } from "../rules/view.ts";
import type { Probe } from "./probe.ts";

/** More than thirty words, so that every tokenizer makes at least twenty tokens of them. */
export const story =
  "My name is Ada. I live in a small house by the sea with two cats, a dog and a parrot, and every morning I walk along the beach to the old lighthouse before I begin to work. Say hello in one short sentence.";
export const question = "What is my name?";

/** An answer as clients send it back in the history: as it came from the server, with its id. */
export const earlierAnswer: Readonly<Record<string, unknown>> = {
  type: "message",
  id: "msg_0123456789abcdef0123456789abcdef0123456789abcdef01",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: "Hello Ada.", annotations: [], logprobs: [] }],
};

/** A step of a scenario of the Responses API: `POST /responses`, which a server may refuse. */
export function create(id: string, about: string, members: Readonly<Record<string, unknown>>): Probe {
  return {
    id: `responses/${id}`,
    about: `Responses: ${about}`,
    endpoint: "responses",
    method: "POST",
    path: () => "/responses",
    body: (model) => ({ model, temperature: 0, max_output_tokens: 32, ...members }),
    expects: "any",
  };
}

/** A step about something stored: GET or DELETE. `path`: below `/responses/`. */
export function onStored(
  method: "GET" | "DELETE",
  endpoint: Exchange["endpoint"],
  id: string,
  about: string,
  path: string,
): Probe {
  return {
    id: `responses/${id}`,
    about: `Responses: ${about}`,
    endpoint,
    method,
    path: () => `/responses/${path}`,
    expects: "any",
  };
}

/** Returns the id of a whole response; `undefined` for anything else. */
export function idOf(exchange: Exchange | undefined): string | undefined {
  if (exchange?.response.status !== 200) return undefined;
  const value = parsedJson(exchange.response.body);
  return isObject(value) && typeof value.id === "string" && value.id !== "" ? value.id : undefined;
}
