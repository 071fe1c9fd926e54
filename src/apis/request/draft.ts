import type { Message, Tool } from "../../core/message.ts";
import type { Limits, OutputConstraint, Sampling, TemplateOptions } from "../../core/request.ts";
import type { Profile } from "../profile.ts";

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** A request while its parameters are read, one after the other; members are absent until one sets them. */
export interface RequestDraft {
  readonly profile: Profile;
  /** The API whose request it is. */
  readonly endpoint: string;
  /** The engine passes the request on to a server that may know what is refused here. */
  readonly forwards: boolean;
  model: string;
  messages: readonly Message[];
  prompts: readonly (string | readonly number[])[];
  n?: number;
  readonly sampling: Mutable<Sampling>;
  readonly xtc: { probability?: number; threshold?: number };
  readonly dry: Mutable<Partial<NonNullable<Sampling["dry"]>>>;
  readonly limits: Mutable<Limits>;
  /** `max_tokens` and `max_completion_tokens`; the smaller one counts. */
  maxTokens?: number;
  maxCompletionTokens?: number;
  /** Logprobs are asked for (chat). */
  logprobs?: boolean;
  /** Alternatives a token. */
  topLogprobs?: number;
  tools?: readonly Tool[];
  toolChoice?: NamedChoice;
  parallelToolCalls?: boolean;
  functions?: readonly Tool[];
  functionCall?: NamedChoice;
  /** The constraints that were asked for, with the parameter each stood in; more than one cannot be. */
  readonly outputs: { readonly parameter: string; readonly constraint: OutputConstraint }[];
  reasoningEffort?: string;
  reasoningInText?: boolean;
  verbosity?: string;
  readonly template: Mutable<TemplateOptions>;
  stream: boolean;
  streamOptions?: {
    readonly include_usage?: boolean | null;
    readonly include_obfuscation?: boolean | null;
    readonly continuous_usage_stats?: boolean | null;
  };
  thinkingBudget?: number;
  prediction?: string;
  tokenIds?: boolean;
  promptLogprobs?: number;
  progress?: boolean;
  includeReasoning?: boolean;
  includeTimings: boolean;
  includeStopString: boolean;
  suffix?: string;
  echo?: boolean;
  bestOf?: number;
  readonly warnings: string[];
  readonly extra: Record<string, unknown>;
}

/** The requested choice of tools, before it is checked against the tools. */
export type NamedChoice =
  | { readonly type: "none" | "auto" | "required" }
  | { readonly type: "named"; readonly name: string; readonly path: string }
  | {
      readonly type: "allowed";
      readonly mode: "auto" | "required";
      readonly names: readonly { readonly name: string; readonly path: string }[];
    };

export function emptyDraft(endpoint: string, profile: Profile, forwards: boolean): RequestDraft {
  return {
    profile,
    endpoint,
    forwards,
    model: "",
    messages: [],
    prompts: [],
    sampling: {},
    xtc: {},
    dry: {},
    limits: {},
    outputs: [],
    template: {},
    stream: false,
    includeTimings: false,
    includeStopString: false,
    warnings: [],
    // Without a prototype: a member named "__proto__" is a member like any other.
    extra: Object.create(null),
  };
}
