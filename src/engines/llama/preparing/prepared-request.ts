import type { Format } from "../../../text/formats/format.ts";
import type { Tool } from "../../../wire/core/message.ts";
import type { MessageRange } from "../../../wire/core/inspection.ts";
import type { GenerationRequest, AnswerLimits, QueueTier, Sampling } from "../../../wire/core/request.ts";
import type { RenderedOutline } from "../cache/rendered-outline.ts";
import type { ConstraintPlan } from "./constraint-plan.ts";

/** A request for the scheduler, with rendered prompts and its grammar. */
export interface PreparedRequest {
  readonly id: number;
  /** The server's id for the request, for log lines. */
  readonly requestId: string;
  /** Duration of the preparation, including the wait for it. */
  readonly preparingMs: number;
  /** Its order in the queue; default `default`. */
  readonly tier?: QueueTier;
  readonly prompts: readonly PromptInput[];
  /** Number of choices per prompt that are returned and that are generated. */
  readonly n: number;
  readonly bestOf: number;
  readonly reading: AnswerParsing;
  readonly sampling: Sampling;
  readonly limits: AnswerLimits;
  readonly logprobs?: NonNullable<GenerationRequest["logprobs"]>;
  /** Additional information that the client requested. */
  readonly extras: RequestedExtras;
  /** Maximum length of the reasoning. */
  readonly reasoningLimit?: ReasoningLimit;
  /** Maximum length, in tokens, of JSON strings that a grammar constrains. */
  readonly maxStringTokens?: number;
  /** The answer begins with the prompt. */
  readonly echo: boolean;
  readonly constraint?: ConstraintPlan;
  /** Predicted text of the answer. */
  readonly prediction?: string;
  /** The tokens of its prompts and the raw text of its answer are reported. */
  readonly inspected?: true;
  /** The parameter to name in the error for a prompt that is too long. */
  readonly promptParam: "messages" | "prompt";
}

export type RequestedExtras = Pick<
  GenerationRequest,
  "wantsRunningUsage" | "wantsProgress" | "wantsTokenIds" | "promptLogprobs"
>;

export interface ReasoningLimit {
  /** Absent: no limit. The reasoning may still be ended on request. */
  readonly tokens?: number;
  /** The texts that close the reasoning: the first time, and every further time. */
  readonly closing: readonly string[];
}

export type PromptInput =
  | {
      readonly type: "spans";
      /** A span with `medium` is not text, but the image or the recording of that index. */
      readonly spans: readonly { readonly text: string; readonly special: boolean; readonly medium?: number }[];
      /** The images and recordings of the spans; absent for a prompt without them. */
      readonly media?: readonly MediaFile[];
      /** The texts of messages in the prompt, for an inspected request. */
      readonly quotes?: readonly MessageRange[];
      /** The template wrote the BOS token, so the prompt needs one. */
      readonly bos: boolean;
      /** The text after the answer, for fill-in-the-middle. */
      readonly suffix?: string;
      /** The parts of the prompt; absent if it is only tokenized or too long. */
      readonly outline?: RenderedOutline | undefined;
      /** The text is only tokenized, with (true) or without the tokens that the tokenizer adds around it. */
      readonly addSpecial?: boolean;
    }
  | { readonly type: "tokens"; readonly tokens: readonly number[] };

/** The file of an image or a recording in a prompt, and its path in the client's request. */
export interface MediaFile {
  readonly data: Uint8Array;
  readonly path: string;
}

/** How the answer's text is parsed. */
export interface AnswerParsing {
  readonly format: Format;
  /** The end of the prompt, which may open reasoning. */
  readonly prefix: string;
  readonly tools?: readonly Tool[];
  readonly callsAllowed: boolean;
  readonly thinking?: boolean;
  /** false: reasoning stays in the text. */
  readonly separateReasoning?: false;
}
