import type { Format } from "../../../formats/format.ts";
import type { Tool } from "../../../core/message.ts";
import type { PromptQuote } from "../../../core/inspection.ts";
import type { GenerationRequest, Limits, Sampling } from "../../../core/request.ts";
import type { PromptOutline } from "../cache/prompt-outline.ts";
import type { ConstraintPlan } from "./constraint-plan.ts";

/** A request as the scheduler takes it: with its prompts rendered and its grammar made. */
export interface PreparedRequest {
  readonly id: number;
  /** The server's id for the request, which lines for the log begin with. */
  readonly requestId: string;
  /** How long its preparation took, its wait for it included. */
  readonly preparingMs: number;
  readonly prompts: readonly PromptInput[];
  /** Choices that are returned, and that are generated, per prompt. */
  readonly n: number;
  readonly bestOf: number;
  readonly reading: AnswerReading;
  readonly sampling: Sampling;
  readonly limits: Limits;
  readonly logprobs?: NonNullable<GenerationRequest["logprobs"]>;
  /** What is to be told beside the answer. */
  readonly telling: Telling;
  /** Thoughts are closed when they are so many tokens long. */
  readonly thoughtLimit?: ThoughtLimit;
  /** Strings of JSON that a grammar holds have at most so many tokens. */
  readonly stringLimit?: number;
  /** Give the prompt back in front of the answer. */
  readonly echo: boolean;
  readonly constraint?: ConstraintPlan;
  /** What the answer will be like. */
  readonly prediction?: string;
  /** Somebody wants to see its prompts, and what the model writes. */
  readonly inspected?: true;
  /** The parameter that a too long prompt came in. */
  readonly promptParam: "messages" | "prompt";
}

export type Telling = Pick<
  GenerationRequest,
  "wantsRunningUsage" | "wantsProgress" | "wantsTokenIds" | "promptLogprobs"
>;

export interface ThoughtLimit {
  readonly tokens: number;
  /** What closes a thought, the first time and every further time. */
  readonly closing: readonly string[];
}

export type PromptInput =
  | {
      readonly type: "spans";
      readonly spans: readonly { readonly text: string; readonly special: boolean }[];
      /** Which pieces of all spans' text are messages' texts, where somebody wants to see that. */
      readonly quotes?: readonly PromptQuote[];
      /** The template wrote the BOS, so the prompt needs one. */
      readonly bos: boolean;
      /** Fill in the middle: what comes after the answer. */
      readonly suffix?: string;
      /** What it consists of; absent: nobody asks, or it is too much. */
      readonly outline?: PromptOutline;
      /** Present: the text as it stands is to be made tokens of, with (true) or without what the tokenizer puts around it. */
      readonly addSpecial?: boolean;
    }
  | { readonly type: "tokens"; readonly tokens: readonly number[] };

/** How the answer's text is read. */
export interface AnswerReading {
  readonly format: Format;
  /** The end of the prompt, which may have begun a thought. */
  readonly prefix: string;
  readonly tools?: readonly Tool[];
  readonly callsAllowed: boolean;
  readonly thinking?: boolean;
  /** false: thoughts stay in the text. */
  readonly separateReasoning?: false;
}
