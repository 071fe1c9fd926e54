import type { FailureError } from "../../core/failure.ts";
import type { Steps } from "../../core/steps.ts";
import type { Profile } from "../profile.ts";

/** How a request is judged. */
export interface Judging {
  readonly profile: Profile;
  /** A server of the same API gets the request as it came, and judges it itself. */
  readonly forwards: boolean;
  readonly warnings: string[];
}

/**
 * Returns the vendor's error for a request, or `undefined`; in steps where it looks at each message. For what no schema can say: rules across
 * members and messages.
 */
export type VendorRule<Subject> = (subject: Subject) => FailureError | undefined | Steps<FailureError | undefined>;

/** Applies the rules in their order. Throws `FailureError` in profile `exact`. */
export function* applyRules<Subject>(
  rules: readonly VendorRule<Subject>[],
  subject: Subject,
  vendor: "OpenAI" | "Anthropic",
  judging: Judging,
): Steps<void> {
  if (judging.forwards) return;
  for (const rule of rules) {
    const judged = rule(subject);
    const refusal = judged && "next" in judged ? yield* judged : judged;
    if (refusal) refuseOrWarn(refusal, vendor, judging);
  }
}

/** Throws the vendor's error in profile `exact`. Profile `lean` serves the request, and warns of what the vendor would answer. */
export function refuseOrWarn(
  refusal: FailureError,
  vendor: "OpenAI" | "Anthropic",
  { profile, warnings }: Omit<Judging, "forwards">,
): void {
  if (profile.judgesAsVendor) throw refusal;
  warnings.push(wouldAnswer(refusal, vendor));
}

/** The warning about a request that the vendor would refuse. */
export function wouldAnswer({ failure: { status, message } }: FailureError, vendor: "OpenAI" | "Anthropic"): string {
  return `${vendor} would answer ${status}: ${message}`;
}
