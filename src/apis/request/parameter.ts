import type { z } from "zod";
import type { Steps } from "../../core/steps.ts";
import type { RequestDraft } from "./draft.ts";

/**
 * One parameter of a request: its schema, its effect and its documentation. docs/parameters.md is generated from these.
 */
export interface RequestParameter<Draft extends RequestDraft = RequestDraft> {
  readonly name: string;
  /** The names of the APIs that have it. */
  readonly endpoints: readonly string[];
  /**
   * - honoured: it does what its documentation says
   * - accepted: it is validated and has no effect, which is harmless
   * - refused: it is not supported, and ignoring it would give another answer than the requested one
   */
  readonly treatment: "honoured" | "accepted" | "refused";
  /** Whether OpenAI documents it, or other servers have added it. */
  readonly origin: "openai" | "extension";
  /** For the documentation: what it does here, in addition to OpenAI's documentation. */
  readonly note: string;
  readonly required: boolean;
  /** Checks a value, which is never null. `issueFailure` makes an error of an issue. */
  readonly shape: z.ZodType;
  /** Puts a value that has passed `shape` into the draft, a long one in steps. Throws `FailureError` for what a schema cannot express. */
  readonly read: (value: unknown, draft: Draft) => Steps<void> | void;
}

interface ParameterOptions<T> {
  readonly endpoints?: readonly string[];
  readonly note?: string;
  readonly shape: z.ZodType<T>;
}

const both: readonly string[] = ["chat", "completions"];

/** A parameter of OpenAI that is supported. */
export function supportedParameter<T, Draft extends RequestDraft = RequestDraft>(
  name: string,
  options: ParameterOptions<T> & { readonly required?: boolean },
  read: (value: T, draft: Draft) => Steps<void> | void,
): RequestParameter<Draft> {
  return parameter(name, "honoured", "openai", options, read);
}

/** A parameter of other servers that is supported. */
export function extensionParameter<T, Draft extends RequestDraft = RequestDraft>(
  name: string,
  options: ParameterOptions<T>,
  read: (value: T, draft: Draft) => void,
): RequestParameter<Draft> {
  return parameter(name, "honoured", "extension", options, read);
}

/** A parameter without effect. `check` throws for what its schema cannot express. */
export function acceptedParameter<T, Draft extends RequestDraft = RequestDraft>(
  name: string,
  options: ParameterOptions<T>,
  check: (value: T, draft: Draft) => void = () => {},
): RequestParameter<Draft> {
  return parameter(name, "accepted", "openai", options, check);
}

/** A parameter that is refused: `read` throws, unless the value has no effect anyway. */
export function refusedParameter<T, Draft extends RequestDraft = RequestDraft>(
  name: string,
  origin: "openai" | "extension",
  options: ParameterOptions<T>,
  read: (value: T, draft: Draft) => void,
): RequestParameter<Draft> {
  return parameter(name, "refused", origin, options, read);
}

function parameter<T, Draft extends RequestDraft>(
  name: string,
  treatment: RequestParameter["treatment"],
  origin: RequestParameter["origin"],
  { endpoints = both, note = "", shape, required = false }: ParameterOptions<T> & { readonly required?: boolean },
  read: (value: T, draft: Draft) => Steps<void> | void,
): RequestParameter<Draft> {
  // `shape` has checked the value; only this cast relies on it.
  return { name, endpoints, treatment, origin, note, required, shape, read: (value, draft) => read(value as T, draft) };
}

type DraftPart = "request" | "asked" | "sampling" | "xtc" | "dry" | "limits" | "template";

/** Returns a `read` that sets one member of a part of the draft to the value. */
export function setMember<Part extends DraftPart, Name extends keyof RequestDraft[Part]>(
  part: Part,
  name: Name,
): (value: NonNullable<RequestDraft[Part][Name]>, draft: RequestDraft) => void {
  return (value, draft) => {
    draft[part][name] = value;
  };
}

/** Returns a `read` that sets a member of the draft itself to the value. */
export function setDraftMember<Name extends keyof RequestDraft>(
  name: Name,
): (value: NonNullable<RequestDraft[Name]>, draft: RequestDraft) => void {
  return (value, draft) => {
    draft[name] = value;
  };
}
