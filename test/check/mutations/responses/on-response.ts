import { judge } from "../../../../src/judge/check/rules/judge.ts";
import { legalResponseBody, legalResponseStream } from "../../legal/responses.ts";
import { oneOf, seeded } from "../../random.ts";
import { bodyDraftOf, bodyExchangeOf } from "../body/body-draft.ts";
import type { IllegalChange } from "../mutation.ts";
import { type EventsDraft, eventsDraftOf, eventsExchangeOf, finalResponse, type Json, ofType } from "./stream-draft.ts";

/** A change of a legal stream. `apply` says whether it could be made in this one; `demands`: its own profile is demanded. */
export function onEvents(
  rule: string,
  name: string,
  apply: (draft: EventsDraft, random: () => number) => boolean,
  demands = false,
): IllegalChange {
  return {
    rule,
    name,
    make(seed) {
      const { exchange, profile } = legalResponseStream(seed);
      const draft = eventsDraftOf(exchange);
      const before = JSON.stringify(eventsExchangeOf(draft));
      if (!apply(draft, seeded(seed))) return undefined;
      const mutated = eventsExchangeOf(draft);
      if (JSON.stringify(mutated) === before) return undefined;
      return judge(mutated, demands ? profile.name : undefined).findings;
    },
  };
}

/** Changes one event of those whose type fits. `change` returns false where it cannot be made. */
export function onEvent(
  rule: string,
  name: string,
  type: RegExp,
  change: (event: Json, draft: EventsDraft) => unknown,
): IllegalChange {
  return onEvents(rule, name, (draft, random) => {
    const events = ofType(draft, type);
    return events.length > 0 && change(oneOf(events, random), draft) !== false;
  });
}

/** Rewrites the text of a stream. */
export function onStreamText(
  rule: string,
  name: string,
  rewrite: (body: string) => string,
  demands = false,
): IllegalChange {
  return onEvents(
    rule,
    name,
    (draft) => {
      draft.rewrite = rewrite;
      return true;
    },
    demands,
  );
}

/** A response as it ended, streamed or whole, and the request that it answers. */
export interface ResponseDraft {
  readonly response: Json;
  request: Json | undefined;
}

/** Changes the response in the last event of a stream, or in a body. `change` returns false where it cannot be made. */
export function onResponse(rule: string, name: string, change: (draft: ResponseDraft) => unknown): IllegalChange {
  return {
    rule,
    name,
    make(seed) {
      return seeded(seed)() < 0.5 ? inStream(seed, change) : inBody(seed, change);
    },
  };
}

type Change = (draft: ResponseDraft) => unknown;

function inStream(seed: number, change: Change): ReturnType<IllegalChange["make"]> {
  const draft = eventsDraftOf(legalResponseStream(seed).exchange);
  const response = finalResponse(draft);
  const before = JSON.stringify(eventsExchangeOf(draft));
  const changed = { response: response ?? {}, request: draft.request };
  if (!response || change(changed) === false) return undefined;
  draft.request = changed.request;
  const mutated = eventsExchangeOf(draft);
  return JSON.stringify(mutated) === before ? undefined : judge(mutated).findings;
}

function inBody(seed: number, change: Change): ReturnType<IllegalChange["make"]> {
  const draft = bodyDraftOf(legalResponseBody(seed).exchange);
  const before = JSON.stringify(bodyExchangeOf(draft));
  const changed = { response: draft.value, request: draft.request };
  if (draft.status !== 200 || draft.endpoint !== "responses" || change(changed) === false) return undefined;
  draft.request = changed.request;
  const mutated = bodyExchangeOf(draft);
  return JSON.stringify(mutated) === before ? undefined : judge(mutated).findings;
}

/** Items of these types. */
export function itemsOf({ output }: Json, type: RegExp): Json[] {
  return (output as Json[]).filter((item) => type.test(String(item.type)));
}

/** Changes the first item of such a type. */
export function onItem(
  rule: string,
  name: string,
  type: RegExp,
  change: (item: Json, draft: ResponseDraft) => unknown,
): IllegalChange {
  return onResponse(rule, name, (draft) => {
    const [item] = itemsOf(draft.response, type);
    return item ? change(item, draft) : false;
  });
}

/** Changes the first part of a message that is of a type. */
export function onPart(
  rule: string,
  name: string,
  type: string,
  change: (part: Json, draft: ResponseDraft) => unknown,
): IllegalChange {
  return onItem(rule, name, /^message$/, (item, draft) => {
    const part = (item.content as Json[]).find((one) => one.type === type);
    return part ? change(part, draft) : false;
  });
}

/** A required member is dropped, renamed, or has each of some wrong values. */
export function spoiledMember(
  rule: string,
  member: string,
  objectOf: (draft: ResponseDraft) => Json | undefined,
  wrong: readonly unknown[],
): IllegalChange[] {
  const on = (name: string, change: (object: Json) => void): IllegalChange =>
    onResponse(rule, name, (draft) => {
      const object = objectOf(draft);
      if (!object) return false;
      change(object);
      return true;
    });
  return [
    on(`no ${member}`, (object) => delete object[member]),
    ...wrong.map((value) => on(`${member}: ${JSON.stringify(value)}`, (object) => (object[member] = value))),
  ];
}
