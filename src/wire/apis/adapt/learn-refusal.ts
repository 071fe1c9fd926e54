import { isObject } from "../../core/json.ts";
import { ClientWords } from "./client-words.ts";
import type { RequestBody, ServerProfile } from "./server-profile.ts";
import { featureRefusals } from "./feature-refusals.ts";
import { lessonOfMember, refusedMembers, type UpstreamRefusal } from "./member-refusals.ts";

/** llama.cpp refuses with 500 what a chat template refuses, OpenRouter with 404 what no provider accepts, Bedrock with 403 marks of its cache. */
const statuses: ReadonlySet<number> = new Set([400, 403, 404, 415, 422, 500, 501]);

/** The maximum number of members that are read from one refusal. */
const maxMembers = 16;

/**
 * What a refusal shows about its server: one change of the profile (see `mergedProfile`). null: nothing, or nothing that the profile does not
 * say already. `body`: the refused request, as it was sent.
 *
 * A lesson is about something that the body has, at the place that the refusal names, and from the server's own words: a refusal may quote
 * the request, and what is in a client's value is not read. One refusal teaches one thing, so that the next attempt confirms it alone.
 */
export function learnRefusal(
  refusal: UpstreamRefusal,
  body: RequestBody,
  profile: ServerProfile,
): ServerProfile | null {
  const client = new ClientWords(body);
  // Bedrock's Converse has the members of the model apart.
  const { additionalModelRequestFields: apart } = body;
  const members = isObject(apart) ? { ...apart, ...body } : body;
  const message = client.masked(wordsOf(refusal));
  const own = { ...refusal, message };
  const at = namedMessage(own);
  for (const { words, lesson } of featureRefusals)
    for (const { 0: found, groups } of message.matchAll(words)) {
      const place = groups?.["place"];
      if (place !== undefined && !place.includes("content")) continue;
      const learned = client.has(found) ? null : lesson(body, profile, at);
      if (learned) return learned;
    }
  for (const path of refusedMembers(own, client).slice(0, maxMembers)) {
    const learned = lessonOfMember(path, members, profile);
    if (learned) return learned;
  }
  return null;
}

/** Whether a refusal has words that `learnRefusal` knows, for a cheap check before the request is read. */
export function mayTeach(refusal: UpstreamRefusal): boolean {
  if (!statuses.has(refusal.status)) return false;
  const message = wordsOf(refusal);
  return (
    featureRefusals.some(({ words }) => message.search(words) !== -1) || refusedMembers(refusal, undefined).length > 0
  );
}

/** Xiaomi has its words in `param` (chatboxai/chatbox#3715). */
function wordsOf({ message, param }: UpstreamRefusal): string {
  return typeof param === "string" && param.includes(" ") ? `${message}\n${param}` : message;
}

/** The index of the message that a refusal names, if it names one only. */
function namedMessage({ message, param }: UpstreamRefusal): number | undefined {
  const named = [...`${message} ${param ?? ""}`.matchAll(/messages(?:\[|\.)(\d{1,6})\b/g)].map(([, at]) => Number(at));
  return new Set(named).size === 1 ? named[0] : undefined;
}
