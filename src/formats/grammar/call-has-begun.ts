import type { Format } from "../format.ts";

/** The state of a `TextReader`. */
export interface ReaderState {
  readonly phase: "reasoning" | "content" | "call";
  /** The raw text since the opener of the open call or section. */
  readonly openCall: string | null;
  readonly sawCalls: boolean;
}

/**
 * Whether a call has certainly begun, so that a lazy grammar may start: the parser is after an opener, or after a header that names a tool.
 * If calls need no marker, an answer in JSON begins like a call, so the call has begun only when its name is complete.
 */
export function callHasStarted(format: Format, { phase, openCall, sawCalls }: ReaderState): boolean {
  if (phase !== "call" || openCall === null) return false;
  if (format.kind === "routed" || sawCalls) return true;
  const openers = [...(format.section?.open ?? []), ...format.calls.flatMap((call) => call.open ?? [])];
  return openers.some((opener) => openCall.trimStart().startsWith(opener));
}
