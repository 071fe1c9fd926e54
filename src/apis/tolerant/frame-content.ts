import type { GenerationFailure } from "../../core/events.ts";
import { badAnswer, failureOfText } from "./read-failure.ts";
import type { RepairLog } from "./repairs.ts";
import { parseTolerantly } from "./tolerant-json.ts";

/** What a frame of an answer holds. */
export type FrameContent =
  /** JSON: a chunk, a whole answer, or an error. */
  | { readonly kind: "object"; readonly value: object | null }
  /** Text on lines of its own: noise between events; instead of events it is the failure. */
  | { readonly kind: "words" }
  /** A ping, or an event that the end of the input cut. */
  | { readonly kind: "nothing" }
  | { readonly kind: "failure"; readonly failure: GenerationFailure };

export interface FrameOptions {
  /** The event's name, "" without one. */
  readonly event: string;
  /** The text stood without `data:`. */
  readonly bare: boolean;
  /** The input is over: what is not complete now was cut. */
  readonly ending: boolean;
}

/** What the text of a frame is; it is neither empty nor `[DONE]`. */
export function readFrame(data: string, { event, bare, ending }: FrameOptions, repairs: RepairLog): FrameContent {
  const value = parseTolerantly(data, repairs);
  if (value !== undefined && typeof value === "object") return { kind: "object", value };
  if (bare) {
    repairs.note("unknown-field");
    return { kind: "words" };
  }
  if (event === "ping" || /^(ping|keep-?alive|heartbeat)$/i.test(data.trim())) {
    repairs.note("keep-alive");
    return { kind: "nothing" };
  }
  const looksLikeObject = data.trimStart().startsWith("{");
  if (ending && looksLikeObject) return { kind: "nothing" };
  if (typeof value === "string" || event === "error" || !looksLikeObject) {
    return { kind: "failure", failure: failureOfText(typeof value === "string" ? value : data) };
  }
  const cause = new Error(data.slice(0, 300));
  return { kind: "failure", failure: badAnswer("The upstream sent an event that is not JSON.", cause) };
}
