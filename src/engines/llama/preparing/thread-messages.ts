import type { Format } from "../../../formats/format.ts";
import type { GenerationFailure } from "../../../core/events.ts";
import type { JsonSchema } from "../../../core/message.ts";
import type { OpenMessage } from "../protocol.ts";
import type { AnswerCheckPlan, ConstraintPlan } from "./constraint-plan.ts";
import type { ModelFacts } from "./model-facts.ts";
import type { AnswerReading, PreparedRequest } from "./prepared-request.ts";

/**
 * The messages between the model's main thread and its preparing thread. The preparing thread does one job at a time and answers each
 * with "prepared", "refused" or "checked". Formats and constraints are registered once, and requests refer to them by number. So equal
 * constraints are one object in the main thread, and what it has computed for one request is reused for the next.
 */
export type ThreadJob =
  /** An `AskedOfModel` as JSON text, in pieces. */
  | { readonly type: "prepare"; readonly asked: readonly string[] }
  | { readonly type: "check"; readonly json: string; readonly schema: JsonSchema };

export type ThreadAnswer =
  | { readonly type: "prepared"; readonly preparation: Preparation }
  | { readonly type: "refused"; readonly failure: GenerationFailure }
  /** null: valid; else what is wrong. */
  | { readonly type: "checked"; readonly errors: string | null };

export type ThreadNews =
  | { readonly type: "format"; readonly number: number; readonly format: Format }
  | { readonly type: "constraint"; readonly number: number; readonly plan: RegisteredPlan }
  /** No request will refer to this constraint any more. */
  | { readonly type: "forget"; readonly number: number };

export type FromThread = ThreadAnswer | ThreadNews;

/** What the thread is started with. */
export type ThreadSetup = Pick<OpenMessage, "chatTemplate" | "toolFormat" | "defaults" | "constrainCalls"> & {
  readonly facts: ModelFacts;
};

/** A constraint whose format is a registered one. */
export type RegisteredPlan = Omit<ConstraintPlan, "format"> & { readonly format: number };

export interface Preparation {
  readonly request: Omit<PreparedRequest, "id" | "requestId" | "preparingMs" | "reading" | "constraint"> & {
    readonly reading: Omit<AnswerReading, "format"> & { readonly format: number };
    readonly constraint?: number;
  };
  readonly warnings: readonly string[];
  /** What the finished answer is checked against. */
  readonly check?: AnswerCheckPlan;
}
