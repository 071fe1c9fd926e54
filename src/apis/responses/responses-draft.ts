import type { RequestDraft } from "../request/draft.ts";
import type { ResponseEcho } from "./response-echo.ts";

/** A request to `/responses` while its parameters are read. What depends on several of them is read from these when all are known. */
export interface ResponsesDraft extends RequestDraft {
  input?: string | readonly unknown[];
  instructions?: string;
  include: readonly string[];
  toolList?: readonly unknown[];
  /** As the client sent it. */
  choice?: unknown;
  /** The answer is to be empty. */
  preparesOnly?: boolean;
  /** What the response repeats of the request. */
  readonly told: { -readonly [Member in keyof ResponseEcho]?: ResponseEcho[Member] };
}
