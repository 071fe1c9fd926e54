import { isObject } from "../../core/json.ts";
import type { RequestBody, ServerProfile } from "./server-profile.ts";
import type { SourceAnswerLimit } from "../source-port.ts";

/** The minimum budget for reasoning in a Messages request, in tokens. Source: https://platform.claude.com/docs/en/api/messages, `thinking`. */
const minBudget = 1024;

/**
 * Lowers the limits on the answer's length in a request's body to `max` tokens; null removes them. Changes `body`, whose members have the
 * profile's names. A body without a limit is not changed. Returns whether a limit was lowered.
 */
export function lowerAnswerLimit(
  body: RequestBody,
  max: number | null,
  limit: SourceAnswerLimit,
  profile: ServerProfile,
): boolean {
  const names = namesOf(limit, profile).filter((name) => {
    const value = body[name];
    return typeof value === "number" && (max === null || value > max);
  });
  for (const name of names) {
    if (max !== null) body[name] = max;
    else if (limit.none === "null") body[name] = null;
    else delete body[name];
  }
  if (max !== null && names.length > 0) lowerBudget(body, max);
  return names.length > 0;
}

/** Sets the limit of a body that has none, for a server whose default is too high. Returns false if the body has one. */
export function setAnswerLimit(
  body: RequestBody,
  max: number,
  limit: SourceAnswerLimit,
  profile: ServerProfile,
): boolean {
  const names = namesOf(limit, profile);
  if (names.some((name) => typeof body[name] === "number")) return false;
  body[profile.maxTokensMember ?? names[0] ?? limit.members[0]] = max;
  return true;
}

function namesOf({ members }: SourceAnswerLimit, { rename = {} }: ServerProfile): string[] {
  return members.map((name) => rename[name] ?? name);
}

/** Reasoning is part of the answer, so its budget must be less than the limit. */
function lowerBudget(body: RequestBody, max: number): void {
  const { thinking } = body;
  if (!isObject(thinking) || typeof thinking["budget_tokens"] !== "number" || thinking["budget_tokens"] < max) return;
  const budget = Math.max(minBudget, Math.floor(max / 2));
  body["thinking"] = max > minBudget ? { ...thinking, budget_tokens: budget } : { type: "disabled" };
}
