import type { GenerationRequest } from "../core/request.ts";
import type { AnswerContext } from "./port.ts";

/** The form of an answer that a chat or completions request asks for. */
export interface RequestedAnswer {
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** undefined: the profile's default. */
  readonly includeObfuscation?: boolean;
  readonly logprobs: boolean;
  /** Calls were forced by name: OpenAI then sends finish_reason "stop". */
  readonly namedToolChoice: boolean;
  /** Legacy `functions`: answer with `function_call`. */
  readonly legacyFunctions: boolean;
  /** Reasoning fields are requested; undefined: the profile's default. */
  readonly includeReasoning?: boolean;
  readonly includeTimings: boolean;
  /** `service_tier` of the request. */
  readonly serviceTier?: string;
  /** Send the stop string that ended the choice, as `stop_str`. */
  readonly includeStopString?: boolean;
  /** The ids of the prompt's and the answer's tokens. */
  readonly includeTokenIds?: boolean;
  readonly includePromptLogprobs?: boolean;
  /** The progress of prompt processing. */
  readonly includeProgress?: boolean;
  /** Chunks have the hosted calls of the answer, as `hosted_call`. */
  readonly includeHostedCalls?: boolean;
  /** Every chunk has the current usage. */
  readonly includeRunningUsage?: boolean;
  /** Estimates the tokens of the prompt for a source that does not count them. */
  readonly estimatePrompt?: () => number;
  /** Legacy completions: the offset of each prompt's answers, in characters, for `text_offset`; default 0. */
  readonly textOffsets?: { readonly byPrompt: readonly number[]; readonly choicesPerPrompt: number };
}

/** The context of the writers of chat and completions. */
export interface ChoicesContext extends AnswerContext {
  readonly requested: RequestedAnswer;
  /** The answer's id (`chatcmpl-…`, `cmpl-…`). A source's id in OpenAI's form, and its `created`, take precedence. */
  readonly id: string;
}

/** A parsed chat or completions request. */
export interface ReadChoicesRequest {
  readonly request: GenerationRequest;
  readonly requested: RequestedAnswer;
  /** Parameters that were ignored, and probable mistakes, for the log. */
  readonly warnings: readonly string[];
}
