import type { z } from "zod";
import type { Steps } from "../../core/steps.ts";
import type { RequestDraft } from "./draft.ts";

/**
 * One parameter of a request: how it is validated, what it does, and what the documentation says of it. docs/parameters.md is
 * generated from these.
 */
export interface Parameter<Draft extends RequestDraft = RequestDraft> {
  readonly name: string;
  /** The APIs that have it, by name. */
  readonly endpoints: readonly string[];
  /**
   * - honoured: it does what its documentation says
   * - accepted: it is validated and has no effect, which does no harm
   * - refused: it cannot be honoured, and an answer without it would not be what was asked
   */
  readonly treatment: "honoured" | "accepted" | "refused";
  /** Whose parameter it is: OpenAI's, or an extension that other servers have made usual. */
  readonly origin: "openai" | "extension";
  /** For the documentation: what it does here, beyond OpenAI's. */
  readonly note: string;
  readonly required: boolean;
  /** Checks a value, which is never null; a failure is told by `issueFailure`. */
  readonly shape: z.ZodType;
  /** Takes a value that has passed `shape`, a long one in steps. Throws `FailureError` for what a shape cannot say. */
  readonly read: (value: unknown, draft: Draft) => Steps<void> | void;
}

interface ParameterOptions<T> {
  readonly endpoints?: readonly string[];
  readonly note?: string;
  readonly shape: z.ZodType<T>;
}

const both: readonly string[] = ["chat", "completions"];

/** A parameter of OpenAI's that does what it says. */
export function honoured<T, Draft extends RequestDraft = RequestDraft>(
  name: string,
  options: ParameterOptions<T> & { readonly required?: boolean },
  read: (value: T, draft: Draft) => Steps<void> | void,
): Parameter<Draft> {
  return parameter(name, "honoured", "openai", options, read);
}

/** A parameter that other servers have made usual and that works here. */
export function extension<T, Draft extends RequestDraft = RequestDraft>(
  name: string,
  options: ParameterOptions<T>,
  read: (value: T, draft: Draft) => void,
): Parameter<Draft> {
  return parameter(name, "honoured", "extension", options, read);
}

/** A parameter without effect on what is generated, and without harm; `check` throws for what its shape cannot say. */
export function accepted<T, Draft extends RequestDraft = RequestDraft>(
  name: string,
  options: ParameterOptions<T>,
  check: (value: T, draft: Draft) => void = () => {},
): Parameter<Draft> {
  return parameter(name, "accepted", "openai", options, check);
}

/** A parameter that is refused, unless `read` finds its value to ask for nothing. */
export function refused<T, Draft extends RequestDraft = RequestDraft>(
  name: string,
  origin: "openai" | "extension",
  options: ParameterOptions<T>,
  read: (value: T, draft: Draft) => void,
): Parameter<Draft> {
  return parameter(name, "refused", origin, options, read);
}

function parameter<T, Draft extends RequestDraft>(
  name: string,
  treatment: Parameter["treatment"],
  origin: Parameter["origin"],
  { endpoints = both, note = "", shape, required = false }: ParameterOptions<T> & { readonly required?: boolean },
  read: (value: T, draft: Draft) => Steps<void> | void,
): Parameter<Draft> {
  // `shape` has checked the value: this is the one place where that is taken on trust.
  return { name, endpoints, treatment, origin, note, required, shape, read: (value, draft) => read(value as T, draft) };
}
