import type { Exchange } from "../../../../src/judge/check/rules/exchange.ts";

export type Json = Record<string, unknown>;

/** An exchange without a stream, taken apart so that a mutation can change it. */
export interface BodyDraft {
  endpoint: Exchange["endpoint"];
  method: string;
  path: string;
  request: Json | undefined;
  status: number;
  headers: Record<string, string> | null;
  value: Json;
  /** How the body was laid out: spaces a level, what ended it, and whether `< > &` were escaped. */
  layout: { indent: number; end: string; htmlSafe: boolean };
  /** Applied to the text of the body at the end. */
  rewrite?: (body: string) => string;
}

export function bodyDraftOf({ endpoint, request, response }: Exchange): BodyDraft {
  const { body, status, headers } = response;
  return {
    endpoint,
    method: request.method,
    path: request.path,
    request: structuredClone(request.body) as Json | undefined,
    status,
    headers: headers && { ...headers },
    value: JSON.parse(body) as Json,
    layout: {
      indent: /^\{\n( *)/.exec(body)?.[1]?.length ?? 0,
      end: body.endsWith("\n") ? "\n" : "",
      htmlSafe: body.includes("\\u003c"),
    },
  };
}

export function bodyExchangeOf(draft: BodyDraft): Exchange {
  const { indent, end, htmlSafe } = draft.layout;
  const json = JSON.stringify(draft.value, null, indent) + end;
  const text = htmlSafe ? json.replace(/[<>&]/g, (one) => `\\u00${one.charCodeAt(0).toString(16)}`) : json;
  return {
    endpoint: draft.endpoint,
    request: { method: draft.method, path: draft.path, ...(draft.request && { body: draft.request }) },
    response: {
      status: draft.status,
      headers: draft.headers,
      body: draft.rewrite ? draft.rewrite(text) : text,
      complete: true,
    },
  };
}

/** An answer of an endpoint that generates. */
export function isAnswer(draft: BodyDraft): boolean {
  return draft.status === 200 && (draft.endpoint === "chat" || draft.endpoint === "completions");
}

export function choicesOf(draft: BodyDraft): Json[] {
  return isAnswer(draft) ? (draft.value.choices as Json[]) : [];
}

export function messagesOf(draft: BodyDraft): Json[] {
  return draft.endpoint === "chat" ? choicesOf(draft).map((choice) => choice.message as Json) : [];
}

export function callsOf(draft: BodyDraft): Json[] {
  return messagesOf(draft).flatMap((message) => (message.tool_calls ?? []) as Json[]);
}

/** The models of a list, or the one model. */
export function modelsOf(draft: BodyDraft): Json[] {
  if (draft.status !== 200) return [];
  if (draft.endpoint === "model") return [draft.value];
  return draft.endpoint === "models" ? (draft.value.data as Json[]) : [];
}

export function usagesOf(draft: BodyDraft): Json[] {
  return isAnswer(draft) ? [draft.value.usage as Json] : [];
}

export function errorsOf(draft: BodyDraft): Json[] {
  return draft.status >= 400 ? [draft.value.error as Json] : [];
}
