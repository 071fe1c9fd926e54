import type { Exchange } from "../../../../src/judge/check/rules/exchange.ts";
import { invalidRequest } from "../../../../src/wire/core/failure.ts";
import { exact, lean, type Profile } from "../../../../src/wire/apis/profile.ts";
import { responsesErrorFormat } from "../../../../src/wire/apis/responses/errors.ts";
import { bodyOf, streamOf } from "../../legal/responses.ts";
import { bySocket, compacted, deleted, itemsListed, refusedBySocket } from "../../legal/stored-responses.ts";
import { between, oneOf } from "../../random.ts";
import type { Json } from "./stream-draft.ts";

/** All that happens to a response that is stored, as a server that keeps them answers it. */
export interface Story {
  readonly created: Exchange;
  readonly found: Exchange;
  readonly next: Exchange;
  readonly items: Exchange;
  readonly deletion: Exchange;
  readonly gone: Exchange;
  readonly orphan: Exchange;
  readonly begun: Exchange;
  readonly running: Exchange;
  readonly compaction: Exchange;
  /** By WebSocket. */
  readonly first: Exchange;
  readonly second: Exchange;
  readonly unknown: Exchange;
}

/** What was put in. */
export const words = "What a client says";

export function story(random: () => number): Story {
  const profile = oneOf([lean, exact], random);
  const tokens = between(20, 500, random);
  const created = answer({ input: words }, tokens, profile, random);
  const id = idOf(created);
  const asked = { input: "And then?" };
  const next = continuing(id, answer(asked, tokens + between(1, 50, random), profile, random));
  const { request, ...rest } = created;
  const inBackground = { ...rest, request: { ...request, body: { ...request.body, background: true } } };
  const begun = withMembers(inBackground, {
    background: true,
    status: oneOf(["queued", "in_progress"], random),
    output: [],
    usage: null,
  });
  return {
    created,
    found: shownLater(created, id),
    next,
    items: itemsListed(id, words, profile, random),
    deletion: deleted(id, profile),
    gone: refused(404, shownLater(created, id), profile),
    orphan: refused(400, next, profile),
    begun,
    running: shownLater(withMembers(created, { status: "in_progress", output: [], usage: null }), id),
    compaction: compacted(words, profile, random),
    first: bySocket(answer({ input: words, stream: true }, tokens, profile, random)),
    second: bySocket(continuing(id, answer({ ...asked, stream: true }, tokens + 7, profile, random))),
    unknown: refusedBySocket("previous_response_not_found", "Previous response with id 'resp_0' not found."),
  };
}

function answer(members: Json, promptTokens: number, profile: Profile, random: () => number): Exchange {
  const body = { model: "m", ...members };
  const write = members.stream === true ? streamOf : bodyOf;
  return write(
    body,
    [
      { type: "start", choice: 0 },
      { type: "text-delta", choice: 0, text: "Hello." },
      { type: "finish", choice: 0, reason: "stop" },
      { type: "usage", usage: { promptTokens, completionTokens: 2 } },
      { type: "end", end: { kind: "done" } },
    ],
    profile,
    random,
  );
}

/** The request, and what repeats it, say which response is continued. */
function continuing(id: string, { request, response, ...rest }: Exchange): Exchange {
  const body = response.body.replaceAll(/("previous_response_id": ?)null/g, `$1"${id}"`);
  return {
    ...rest,
    request: { ...request, body: { ...request.body, previous_response_id: id } },
    response: { ...response, body },
  };
}

function idOf({ response }: Exchange): string {
  return (JSON.parse(response.body) as { id: string }).id;
}

function shownLater(exchange: Exchange, id: string): Exchange {
  return { ...exchange, request: { method: "GET", path: `/v1/responses/${id}` } };
}

function refused(status: number, { request, endpoint }: Exchange, profile: Profile): Exchange {
  const failure = { ...invalidRequest("It is not found.").failure, status };
  const { contentType, body } = responsesErrorFormat.writeFailure(failure, profile, "req_1");
  const headers = { "content-type": contentType, "x-request-id": "req_1" };
  return { endpoint, request, response: { status, headers, body, complete: true } };
}

export function withMembers(exchange: Exchange, members: Json): Exchange {
  return withBody(exchange, { ...(JSON.parse(exchange.response.body) as Json), ...members });
}

export function withBody(exchange: Exchange, value: Json): Exchange {
  return { ...exchange, response: { ...exchange.response, body: JSON.stringify(value) } };
}

export function withStatus(exchange: Exchange, status: number): Exchange {
  return { ...exchange, response: { ...exchange.response, status } };
}
