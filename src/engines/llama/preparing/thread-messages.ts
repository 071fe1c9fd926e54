import type { Format } from "../../../text/formats/format.ts";
import type { GenerationFailure } from "../../../wire/core/events.ts";
import type { JsonSchema } from "../../../wire/core/message.ts";
import type { OpenModelMessage } from "../protocol.ts";
import type { AnswerCheckPlan, ConstraintPlan } from "./constraint-plan.ts";
import type { ModelFacts } from "./model-facts.ts";
import type { AnswerParsing, PreparedRequest } from "./prepared-request.ts";

/**
 * The messages between the main thread of a model's process and its preparing thread, which does one job at a time and answers each with
 * "prepared", "refused" or "checked". Formats and constraints are registered once, and requests refer to them by number, so that requests
 * with equal constraints share what the main thread computes for them.
 */
export type ThreadJob =
  /** An `AskedOfModel` as JSON, in chunks. */
  | { readonly type: "prepare"; readonly asked: readonly string[] }
  | { readonly type: "check"; readonly json: string; readonly schema: JsonSchema };

export type ThreadAnswer =
  | { readonly type: "prepared"; readonly preparation: Preparation }
  | { readonly type: "refused"; readonly failure: GenerationFailure }
  /** The validation errors; null if the answer is valid. */
  | { readonly type: "checked"; readonly errors: string | null };

export type ThreadRegistration =
  | { readonly type: "format"; readonly number: number; readonly format: Format }
  | { readonly type: "constraint"; readonly number: number; readonly plan: RegisteredPlan }
  /** No later request refers to this constraint. */
  | { readonly type: "forget"; readonly number: number };

export type FromThread = ThreadAnswer | ThreadRegistration;

/** `workerData` of the thread. */
export type ThreadSetup = Pick<OpenModelMessage, "chatTemplate" | "toolFormat" | "defaults" | "constrainCalls"> & {
  readonly facts: ModelFacts;
};

/** A constraint that refers to a registered format. */
export type RegisteredPlan = Omit<ConstraintPlan, "format"> & { readonly format: number };

export interface Preparation {
  readonly request: Omit<PreparedRequest, "id" | "requestId" | "preparingMs" | "reading" | "constraint"> & {
    readonly reading: Omit<AnswerParsing, "format"> & { readonly format: number };
    readonly constraint?: number;
  };
  readonly warnings: readonly string[];
  /** What the complete answer is validated against. */
  readonly check?: AnswerCheckPlan;
}
