import type { Message, Tool } from "../../core/message.ts";
import type {
  AnswerLimits,
  GenerationRequest,
  OutputConstraint,
  Sampling,
  SealedValues,
  TemplateOptions,
} from "../../core/request.ts";
import type { RequestedAnswer } from "../choices-answer.ts";
import type { ReadOptions } from "../port.ts";
import { lean, type Profile } from "../profile.ts";
import { invalidRequest } from "../../core/failure.ts";
import { openSeal, type TurnSeal } from "../turn-seal.ts";
import { invalidValue } from "./refusals.ts";

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/**
 * A request while its parameters are read, one after the other. A parameter that is one member of the `GenerationRequest` or of the
 * `AskedAnswer` sets it directly in `request` or `asked`. The other members hold what several parameters decide together, and are absent
 * until a parameter sets them.
 */
export interface RequestDraft {
  readonly profile: Profile;
  /** The name of the API. */
  readonly endpoint: string;
  /** The engine forwards the request to a server that may support what this server refuses. */
  readonly forwards: boolean;
  /** The model of OpenAI that the requested model represents. */
  readonly standsFor: string | undefined;
  /** Opens what this server has sealed for the client. */
  readonly turnSeal: TurnSeal;
  /** See `ReadOptions`. */
  readonly runs: ReadOptions["runs"];
  readonly hostedNames: ReadOptions["hostedNames"];
  /** What such values contain; absent: there are none. */
  sealed?: SealedValues;
  /** The request so far; `sharedMembers` completes it. */
  readonly request: Mutable<Omit<GenerationRequest, "prompt">>;
  /** What the request says about the form of its answer; `completeRequestedAnswer` completes it. */
  readonly asked: Mutable<RequestedAnswer>;
  /** `request.sampling`, without XTC and DRY, which several parameters set. */
  readonly sampling: Mutable<Sampling>;
  readonly xtc: { probability?: number; threshold?: number };
  readonly dry: Mutable<Partial<NonNullable<Sampling["dry"]>>>;
  /** `request.limits`. */
  readonly limits: Mutable<AnswerLimits>;
  /** `request.extra`. */
  readonly extra: Record<string, unknown>;
  readonly template: Mutable<TemplateOptions>;
  messages: readonly Message[];
  prompts: readonly (string | readonly number[])[];
  /** `max_tokens` and `max_completion_tokens`; the smaller one counts. */
  maxTokens?: number;
  maxCompletionTokens?: number;
  /** Log probabilities are requested (chat). */
  logprobs?: boolean;
  /** Alternatives per token. */
  topLogprobs?: number;
  tools?: readonly Tool[];
  toolChoice?: NamedChoice;
  parallelToolCalls?: boolean;
  functions?: readonly Tool[];
  functionCall?: NamedChoice;
  /** The requested constraints, each with the parameter that contains it. A request may have one. */
  readonly outputs: { readonly parameter: string; readonly constraint: OutputConstraint }[];
  reasoningEffort?: string;
  verbosity?: string;
  streamOptions?: {
    readonly include_usage?: boolean | null | undefined;
    readonly include_obfuscation?: boolean | null | undefined;
    readonly continuous_usage_stats?: boolean | null | undefined;
  };
  suffix?: string;
  echo?: boolean;
  bestOf?: number;
  readonly warnings: string[];
}

/** A tool choice before `resolveTools` checks it against the tools. */
export type NamedChoice =
  | { readonly type: "none" | "auto" | "required" }
  | { readonly type: "named"; readonly name: string; readonly path: string }
  | {
      readonly type: "allowed";
      readonly mode: "auto" | "required";
      readonly names: readonly { readonly name: string; readonly path: string }[];
    };

export function emptyDraft(
  endpoint: string,
  { profile = lean, forwards = false, turnSeal = openSeal, standsFor, runs, hostedNames }: ReadOptions = {},
): RequestDraft {
  const sampling: Sampling = {};
  const limits: AnswerLimits = {};
  // Without a prototype: a member named "__proto__" is a member like any other.
  const extra: Record<string, unknown> = Object.create(null);
  return {
    profile,
    endpoint,
    forwards,
    standsFor,
    turnSeal,
    runs,
    hostedNames,
    request: { id: "", model: "", sampling, limits, wantsUsage: false, stream: false, extra },
    asked: {
      stream: false,
      includeUsage: false,
      logprobs: false,
      namedToolChoice: false,
      legacyFunctions: false,
      includeTimings: false,
    },
    sampling,
    xtc: {},
    dry: {},
    limits,
    extra,
    template: {},
    messages: [],
    prompts: [],
    outputs: [],
    warnings: [],
  };
}

/**
 * Completes `draft.request` and returns it: the members that do not depend on the API. `body`: the request as the client sent it, for an
 * upstream of the same API.
 */
export function completeRequest(
  draft: RequestDraft,
  id: string,
  body: Readonly<Record<string, unknown>>,
): RequestDraft["request"] {
  const { request, sampling, limits, xtc, dry, sealed, maxTokens = Infinity, maxCompletionTokens = Infinity } = draft;
  const { outputs, reasoningEffort, verbosity, streamOptions } = draft;
  request.id = id;
  request.passthrough = { dialect: draft.endpoint, body, ...(sealed && { sealed }) };
  request.wantsUsage = streamOptions?.include_usage ?? false;
  if (hasRunningUsage(draft)) request.wantsRunningUsage = true;
  const { probability = 0, threshold = 0.1 } = xtc;
  const { multiplier = 0 } = dry;
  if (probability > 0) sampling.xtc = { probability, threshold };
  if (multiplier > 0) sampling.dry = { ...dry, multiplier };
  const limit = Math.min(maxTokens, maxCompletionTokens);
  if (Number.isFinite(limit)) limits.maxTokens = limit;
  if (outputs[0]) request.output = outputs[0].constraint;
  if (reasoningEffort !== undefined) request.reasoning = { ...request.reasoning, effort: reasoningEffort };
  if (verbosity !== undefined) request.verbosity = verbosity;
  return request;
}

/** Completes `draft.asked` and returns it. Throws `FailureError` (400) for options that do not fit together. */
export function completeRequestedAnswer(draft: RequestDraft): RequestDraft["asked"] {
  const { asked, streamOptions } = draft;
  const { stream } = draft.request;
  if (streamOptions && !stream) {
    const message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
    if (draft.profile.judgesAsVendor) throw invalidRequest(message, "stream_options");
    draft.warnings.push(message);
  }
  if (asked.includePromptLogprobs && stream) throw invalidValue("prompt_logprobs", "it is not available in a stream.");
  asked.stream = stream;
  asked.includeUsage = streamOptions?.include_usage ?? false;
  const obfuscation = streamOptions?.include_obfuscation ?? undefined;
  if (obfuscation !== undefined) asked.includeObfuscation = obfuscation;
  if (hasRunningUsage(draft)) asked.includeRunningUsage = true;
  return asked;
}

/** vLLM's `continuous_usage_stats` requires `include_usage` and a stream, as in vLLM. */
function hasRunningUsage({ request, streamOptions }: RequestDraft): boolean {
  return request.stream && streamOptions?.include_usage === true && streamOptions.continuous_usage_stats === true;
}
