import type { GenerationEnd } from "../core/events.ts";
import type { Profile } from "./profile.ts";
import type { Repair } from "./tolerant/repairs.ts";

/** An API whose captures can be repaired. */
export type CapturedApi = "chat" | "completions" | "responses" | "messages";

export interface RepairOptions {
  readonly profile: Profile;
  /** Which endpoint's answer it is; "auto": by what it holds. */
  readonly from: CapturedApi | "auto";
  /** Uniform in [0, 1): for obfuscation and missing ids. */
  readonly random: () => number;
  /** Unix time in seconds, for answers that do not tell theirs. */
  readonly now: number;
  /** The body of the request, where it is known: answers that repeat parts of it keep their order. */
  readonly request?: unknown;
}

export interface RepairedCapture {
  /** The exact answer: an event stream, or a JSON body where the capture was one. */
  readonly body: string;
  readonly repairs: readonly Repair[];
  readonly end: GenerationEnd;
}
