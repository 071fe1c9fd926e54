import type { GenerationRequest } from "../core/request.ts";
import type { AnswerContext } from "./port.ts";

/** What a chat or completions request says about the form of its answer, which is made of choices. */
export interface AskedAnswer {
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** undefined: the profile's default. */
  readonly includeObfuscation?: boolean;
  readonly logprobs: boolean;
  /** Calls were forced by name; OpenAI then answers finish_reason "stop". */
  readonly namedToolChoice: boolean;
  /** Legacy `functions`: answer with `function_call`. */
  readonly legacyFunctions: boolean;
  /** The client asked for reasoning fields in the answer; undefined: the profile's default. */
  readonly includeReasoning?: boolean;
  readonly includeTimings: boolean;
  /** Show which stop string was hit, as `stop_str` beside the finish reason. */
  readonly includeStopString?: boolean;
  /** The ids of the prompt's and the answer's tokens. */
  readonly includeTokenIds?: boolean;
  readonly includePromptLogprobs?: boolean;
  /** How far the reading of the prompt is. */
  readonly includeProgress?: boolean;
  /** Every chunk has the usage so far. */
  readonly includeRunningUsage?: boolean;
  /** Legacy completions: where each prompt's answers begin, in characters, for `text_offset`; default 0. */
  readonly textOffsets?: { readonly byPrompt: readonly number[]; readonly choicesPerPrompt: number };
}

/** What the writers of chat and completions need. */
export interface ChoicesContext extends AnswerContext {
  readonly asked: AskedAnswer;
  /** The answer's id (`chatcmpl-…`, `cmpl-…`); a source's own id wins where it is in OpenAI's form, and its `created` with it. */
  readonly id: string;
}

/** A chat or completions request as it was read. */
export interface ReadChoicesRequest {
  readonly request: GenerationRequest;
  readonly asked: AskedAnswer;
  /** What was accepted and ignored, or looks like a mistake; for the log. */
  readonly warnings: readonly string[];
}
