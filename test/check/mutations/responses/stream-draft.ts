import type { Exchange } from "../../../../src/judge/check/rules/exchange.ts";

export type Json = Record<string, unknown>;

/** A stream of the Responses API taken apart so that a mutation can change it. */
export interface EventsDraft {
  request: Json | undefined;
  headers: Record<string, string> | null;
  events: Json[];
  /** The text of each event as it was: what is not changed keeps its bytes. */
  readonly bytes: ReadonlyMap<Json, string>;
  /** `data: [DONE]\n\n`, or nothing. */
  tail: string;
  complete: boolean;
  /** Numbers the events anew, so that one that is dropped is not noticed by its number alone. */
  renumbers: boolean;
  /** Applied to the text of the body at the end. */
  rewrite?: (body: string) => string;
  readonly path: string;
}

export function eventsDraftOf({ request, response }: Exchange): EventsDraft {
  const frames = response.body.split("\n\n").filter(Boolean);
  const bytes = new Map<Json, string>();
  for (const frame of frames) {
    const data = /^event: .*\ndata: (.*)$/.exec(frame)?.[1];
    if (data !== undefined) bytes.set(JSON.parse(data) as Json, frame);
  }
  return {
    request: structuredClone(request.body) as Json | undefined,
    headers: response.headers && { ...response.headers },
    events: [...bytes.keys()],
    bytes,
    tail: frames.at(-1) === "data: [DONE]" ? "data: [DONE]\n\n" : "",
    complete: response.complete,
    renumbers: true,
    path: request.path,
  };
}

export function eventsExchangeOf(draft: EventsDraft): Exchange {
  const text = draft.events.map((event, at) => `${frameOf(draft, event, at)}\n\n`).join("") + draft.tail;
  return {
    endpoint: "responses",
    request: { method: "POST", path: draft.path, ...(draft.request && { body: draft.request }) },
    response: {
      status: 200,
      headers: draft.headers,
      body: draft.rewrite ? draft.rewrite(text) : text,
      complete: draft.complete,
    },
  };
}

function frameOf({ bytes, renumbers }: EventsDraft, event: Json, at: number): string {
  const numbered = renumbers && "sequence_number" in event ? { ...event, sequence_number: at } : event;
  const before = bytes.get(event);
  const data = before?.slice(before.indexOf("data: ") + "data: ".length);
  const isSame = data !== undefined && JSON.stringify(JSON.parse(data)) === JSON.stringify(numbered);
  return isSame ? (before as string) : `event: ${String(numbered.type)}\ndata: ${JSON.stringify(numbered)}`;
}

export function ofType(draft: EventsDraft, pattern: RegExp): Json[] {
  return draft.events.filter(({ type }) => pattern.test(String(type)));
}

export function remove(draft: EventsDraft, event: Json): void {
  draft.events.splice(draft.events.indexOf(event), 1);
}

/** Puts a further event behind one. */
export function insert(draft: EventsDraft, after: Json, event: Json): void {
  draft.events.splice(draft.events.indexOf(after) + 1, 0, event);
}

/** Whether the response ended as it should. */
export function isWhole(draft: EventsDraft): boolean {
  return ofType(draft, /\.(completed|incomplete)$/).length > 0;
}

/** The response that ended. */
export function finalResponse(draft: EventsDraft): Json | undefined {
  return ofType(draft, /\.(completed|incomplete|failed)$/).at(-1)?.response as Json | undefined;
}
