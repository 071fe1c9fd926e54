import type { Usage } from "../../core/events.ts";
import { isObject } from "../../core/json.ts";

/**
 * The usage that a program reports: both counts, or one of them and the total. undefined for less, since a count
 * that nobody made must not reach a client. A program need not be typed, so every member is checked.
 */
export function readProgramUsage(told: unknown): Usage | undefined {
  if (!isObject(told)) return undefined;
  const total = count(told["totalTokens"]);
  const promptTokens = count(told["promptTokens"]) ?? rest(total, count(told["completionTokens"]));
  const completionTokens = count(told["completionTokens"]) ?? rest(total, promptTokens);
  if (promptTokens === undefined || completionTokens === undefined) return undefined;
  const promptDetails = counts(told["promptDetails"]);
  const completionDetails = counts(told["completionDetails"]);
  return {
    promptTokens,
    completionTokens,
    ...(total !== undefined && { totalTokens: total }),
    ...(promptDetails && { promptDetails }),
    ...(completionDetails && { completionDetails }),
  };
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : undefined;
}

function rest(total: number | undefined, part: number | undefined): number | undefined {
  return total === undefined || part === undefined || part > total ? undefined : total - part;
}

function counts(details: unknown): Record<string, number> | undefined {
  if (!isObject(details)) return undefined;
  const known = Object.entries(details).filter((entry): entry is [string, number] => count(entry[1]) !== undefined);
  return Object.fromEntries(known);
}
