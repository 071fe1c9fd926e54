import type { FailureError } from "../../core/failure.ts";
import { StepCounter, type Steps } from "../../core/steps.ts";
import type { Profile } from "../profile.ts";

/** Whose answers the rules are. */
export type Vendor = "OpenAI" | "Anthropic" | "Google";

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
  vendor: Vendor,
  judging: Judging,
): Steps<void> {
  if (judging.forwards && !judging.profile.isVendor) return;
  for (const rule of rules) {
    const judged = rule(subject);
    const refusal = judged && "next" in judged ? yield* judged : judged;
    if (refusal) refuseOrWarn(refusal, vendor, judging);
  }
}

/** Throws the vendor's error in profile `exact`. Profile `lean` serves the request, and warns of what the vendor would answer. */
export function refuseOrWarn(
  refusal: FailureError,
  vendor: Vendor,
  { profile, warnings }: Omit<Judging, "forwards">,
): void {
  if (profile.judgesAsVendor) throw refusal;
  warnings.push(wouldAnswer(refusal, vendor));
}

/** The warning about a request that the vendor would refuse. */
export function wouldAnswer({ failure: { status, message } }: FailureError, vendor: Vendor): string {
  return `${vendor} would answer ${status}: ${message}`;
}

/** A message of chat, or of the conversation that a request was read into. */
interface Said {
  readonly content?: string | readonly object[] | null | undefined;
}

/**
 * Whether no text of the messages has the word JSON, without which OpenAI refuses JSON mode. Source:
 * https://platform.openai.com/docs/guides/structured-outputs#json-mode.
 */
export function* lacksWordJson(messages: readonly Said[]): Steps<boolean> {
  const pace = new StepCounter();
  for (const { content } of messages) {
    const parts = typeof content === "string" ? [{ text: content }] : (content ?? []);
    if (parts.some((part) => "text" in part && typeof part.text === "string" && /json/i.test(part.text))) return false;
    if (pace.endsStep(1 + parts.length)) yield;
  }
  return true;
}
