import type { Format } from "../format.ts";

/** Where the reader of a text stands, as `TextReader` tells it. */
export interface ReaderPlace {
  readonly phase: "reasoning" | "content" | "call";
  /** Raw text since the opener of the call, or of its section, that is open. */
  readonly openCall: string | null;
  readonly sawCalls: boolean;
}

/**
 * Whether a call begins for certain, so that a lazy grammar may bind: the reader is behind an opener, or behind a header that names a
 * tool. Where calls need no marker, an answer in JSON begins as they do: there the name must have come.
 */
export function callHasBegun(format: Format, { phase, openCall, sawCalls }: ReaderPlace): boolean {
  if (phase !== "call" || openCall === null) return false;
  if (format.kind === "routed" || sawCalls) return true;
  const openers = [...(format.section?.open ?? []), ...format.calls.flatMap((call) => call.open ?? [])];
  return openers.some((opener) => openCall.trimStart().startsWith(opener));
}
