import type { Offence, RuleFacts } from "../rule.ts";
import type { ResponseView } from "./response-view.ts";

/** Judges a response of the Responses API as it ended, streamed or whole. */
export interface ResponseRule extends RuleFacts {
  readonly judges: "response";
  /** Whether this response can show the rule at all. Default: always. */
  shown?(view: ResponseView): boolean;
  judge(view: ResponseView): Iterable<Offence>;
}
