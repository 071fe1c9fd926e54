import type { AnswerContext } from "../port.ts";

/** What a request says about the form of its answer. */
export interface AskedMessage {
  /** The server's id for the request; a failure within a stream names it. */
  readonly requestId: string;
  readonly thoughts: ShownThoughts;
  /** Estimates the tokens of the prompt, for an answer whose source has not counted them. Absent: such an answer says 0. */
  readonly estimatePrompt?: () => number;
}

/**
 * How thoughts are shown: with their text, as blocks that have a signature only, or not at all.
 * Source: https://platform.claude.com/docs/en/build-with-claude/extended-thinking, `display`.
 */
export type ShownThoughts = "shown" | "omitted" | "hidden";

/** What the writers of a message need. */
export interface MessageContext extends AnswerContext {
  readonly asked: AskedMessage;
  /** The message's id; a source's own wins where it is in Anthropic's form. */
  readonly id: string;
}
