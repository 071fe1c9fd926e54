import type { Message, Tool } from "../../core/message.ts";
import type {
  GenerationRequest,
  AnswerLimits,
  OutputConstraint,
  Sampling,
  TemplateOptions,
} from "../../core/request.ts";
import type { RequestedAnswer } from "../choices-answer.ts";
import type { Profile } from "../profile.ts";

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
  /** The request so far; `sharedMembers` completes it. */
  readonly request: Mutable<Omit<GenerationRequest, "prompt">>;
  /** What the request says about the form of its answer; `askedAnswer` completes it. */
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

export function emptyDraft(endpoint: string, profile: Profile, forwards: boolean): RequestDraft {
  const sampling: Sampling = {};
  const limits: AnswerLimits = {};
  // Without a prototype: a member named "__proto__" is a member like any other.
  const extra: Record<string, unknown> = Object.create(null);
  return {
    profile,
    endpoint,
    forwards,
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
