/**
 * What a prompt consists of, in numbers: enough to see which part of it differs from an earlier one, and too little to read it. Places
 * are in bytes of the rendered text.
 */
export interface PromptOutline {
  /** The length of the rendered text. */
  readonly bytes: number;
  /** So many of them at the end open the answer. */
  readonly openingBytes: number;
  readonly messages: readonly MessageMark[];
  readonly tools: readonly ToolMark[];
  /** Where the tools begin at the earliest. */
  readonly toolsStart: number;
  /** Hash of what the chat template was told beside messages and tools. */
  readonly options: number;
}

export interface MessageMark {
  readonly role: string;
  /** Where the client's request has it. */
  readonly path: string;
  /** Where the message begins at the earliest: what comes before ends there. */
  readonly start: number;
  /** Of its role, words, calls and documents. */
  readonly hash: number;
  readonly thoughts: number;
  readonly images: number;
  /** In characters. */
  readonly length: number;
  /** Its sentences and lines; absent where nobody looks so closely. */
  readonly pieces?: readonly TextPiece[];
}

export interface TextPiece {
  readonly hash: number;
  readonly length: number;
}

export interface ToolMark {
  readonly name: number;
  /** Of its description and parameters. */
  readonly hash: number;
  readonly length: number;
}

/** Of a prompt that is no conversation. */
export const promptRole = "prompt";

export function isSystem({ role }: MessageMark): boolean {
  return role === "system" || role === "developer";
}

export function sameMessage(one: MessageMark, other: MessageMark | undefined): boolean {
  return (
    other !== undefined && one.hash === other.hash && one.thoughts === other.thoughts && one.images === other.images
  );
}
