import type { GenerationEnd } from "../core/events.ts";
import type { Profile } from "./profile.ts";
import type { Repair } from "./tolerant/repairs.ts";

/** An API whose captures can be repaired. */
export type CapturedApi = "chat" | "completions" | "responses" | "messages";

export interface RepairOptions {
  readonly profile: Profile;
  /** The API of the answer; "auto": detected from its content. */
  readonly from: CapturedApi | "auto";
  /** Uniform in [0, 1): for obfuscation and missing ids. */
  readonly random: () => number;
  /** Unix time in seconds, for answers without a time. */
  readonly now: number;
  /** The body of the request, if known: answers that repeat parts of it keep their order. */
  readonly request?: unknown;
}

export interface RepairedCapture {
  /** The exact answer: an event stream, or a JSON body if the capture was one. */
  readonly body: string;
  readonly repairs: readonly Repair[];
  readonly end: GenerationEnd;
}
