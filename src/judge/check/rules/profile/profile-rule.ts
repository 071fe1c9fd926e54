import type { Violation, RuleFacts } from "../rule.ts";
import type { BodyView, StreamView } from "../view.ts";

/**
 * The profiles that `truewire check --profile` accepts. `lean`: one member per delta, nothing repeated, compact JSON; `truewire serve` sends
 * it by default. `exact`: the bytes of api.openai.com as recorded since August 2025, and of api.anthropic.com since May 2026.
 */
export type ProfileName = "lean" | "exact";

/**
 * A rule of the requested profile. It judges streams, bodies (errors included), or both. An answer that breaks it is legal; what is wrong in
 * every profile is left to the other rules.
 */
export interface ProfileRule extends RuleFacts {
  readonly judges: "profile";
  /** The vendor whose API it judges; default: OpenAI's. */
  readonly vendor?: "Anthropic";
  readonly stream?: ProfileJudge<StreamView>;
  readonly body?: ProfileJudge<BodyView>;
}

export interface ProfileJudge<View> {
  /** Returns whether the rule applies to this exchange. */
  shown(view: View, profile: ProfileName): boolean;
  judge(view: View, profile: ProfileName): Iterable<Violation>;
}

/** What the rules about OpenAI's profiles have in common. */
export const profileFacts = {
  severity: "error",
  concern: "it is not the form that was demanded",
  breaks: ["tests that compare bytes"],
  judges: "profile",
} as const satisfies Partial<ProfileRule>;
