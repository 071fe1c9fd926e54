import type { RequestBody, ServerProfile } from "./server-profile.ts";

/** The maximum number of refused members in a profile: clients choose the names. */
export const maxNames = 64;

/** Members without which a request means nothing, or something else. */
export const essential: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "prompt",
  "input",
  "stream",
  "role",
  "content",
  "system",
  "instructions",
  "previous_response_id",
  "conversation",
]);

export function droppedMember(name: string, body: RequestBody, { drop = [] }: ServerProfile): ServerProfile | null {
  if (essential.has(name) || !isName(name) || !Object.hasOwn(body, name)) return null;
  return drop.includes(name) || drop.length >= maxNames ? null : { drop: [name] };
}

/** Names of other forms are no member's, and could not be shown. */
export function isName(name: string): boolean {
  return /^[a-z][\w-]{0,63}$/i.test(name);
}
