import type { ServerProfile } from "../../wire/apis/adapt/server-profile.ts";

/** One line of `truewire doctor`. */
export interface DoctorFinding {
  /** A stable name, for programs: `tools`, `context`. */
  readonly id: string;
  readonly status: "ok" | "problem" | "unknown";
  readonly text: string;
  /** What the user can do about it. */
  readonly cure?: string;
}

export interface DoctorReport {
  /** The base URL, or `this machine`. */
  readonly subject: string;
  readonly model?: string;
  /** false: there was nothing to examine, as no server answered with an API. */
  readonly examined: boolean;
  readonly findings: readonly DoctorFinding[];
  /** What its refusals have shown that Truewire does not know of it. Absent: nothing. */
  readonly profile?: ServerProfile;
}

export interface ServerQuestion {
  /** With a scheme. */
  readonly url: string;
  /** Sent to this URL's server only. */
  readonly key?: string;
  readonly model?: string;
  /** Time for all requests together, in milliseconds. What is not reached in it is reported as unknown. */
  readonly budget: number;
  /** Ends it earlier. */
  readonly signal?: AbortSignal;
  /** Called with what is asked next, before it is asked. */
  readonly onStep?: (about: string) => void;
}
