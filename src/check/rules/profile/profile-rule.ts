import type { Offence, RuleFacts } from "../rule.ts";
import type { BodyView, StreamView } from "../view.ts";

/**
 * The forms of the wire that can be demanded (`truewire check --profile`). `lean`: one member a delta, nothing repeated, compact JSON;
 * what `truewire serve` sends by default. `exact`: the bytes of api.openai.com, as recorded since August 2025, and of api.anthropic.com,
 * since May 2026.
 */
export type ProfileName = "lean" | "exact";

/**
 * A rule that holds only when its profile was demanded: both are legal. It judges streams, bodies (errors among them), or both; what
 * is wrong whatever the profile is left to the other rules.
 */
export interface ProfileRule extends RuleFacts {
  readonly judges: "profile";
  /** Whose API it judges; default: OpenAI's. */
  readonly vendor?: "Anthropic";
  readonly stream?: ProfileJudge<StreamView>;
  readonly body?: ProfileJudge<BodyView>;
}

export interface ProfileJudge<View> {
  /** Whether this exchange can show the rule at all. */
  shown(view: View, profile: ProfileName): boolean;
  judge(view: View, profile: ProfileName): Iterable<Offence>;
}
