import type { Offence, RuleFacts } from "../rule.ts";
import type { BodyView, Json, StreamView } from "../view.ts";

/** The forms of the wire that can be demanded (`truewire check --profile`): wire.md section 1. */
export type ProfileName = "lean" | "openai";

/**
 * A rule that holds only when its profile was demanded: both are legal. It judges streams, bodies (errors among them), or both; what
 * is wrong whatever the profile is left to the other rules.
 */
export interface ProfileRule extends RuleFacts {
  readonly judges: "profile";
  readonly stream?: ProfileJudge<StreamView>;
  readonly body?: ProfileJudge<BodyView>;
}

export interface ProfileJudge<View> {
  /** Whether this exchange can show the rule at all. */
  shown(view: View, profile: ProfileName): boolean;
  judge(view: View, profile: ProfileName): Iterable<Offence>;
}

/**
 * What is wrong with an object's members; undefined when nothing is. `wanted`: their names in order, those that may be absent with a
 * `?` behind. `further`: others may stand among them.
 */
export function membersOffence(object: Json, wanted: readonly string[], further: boolean): string | undefined {
  const names = wanted.map((name) => name.replace("?", ""));
  const missing = wanted.find((name) => !name.endsWith("?") && !(name in object));
  if (missing !== undefined) return `no ${missing}`;
  const keys = Object.keys(object);
  const foreign = keys.find((key) => !names.includes(key));
  if (!further && foreign !== undefined) return `the member ${foreign}`;
  const known = keys.filter((key) => names.includes(key));
  const due = names.filter((name) => name in object);
  return known.join() === due.join() ? undefined : `the order ${known.join(", ")}`;
}
