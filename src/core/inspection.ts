import type { GenerationEvent } from "./events.ts";
import type { GenerationRequest } from "./request.ts";

/**
 * Looks into one generation, for a person who wants to see all of it: texts of the conversation included. Nobody looks most of the time;
 * an engine then makes nothing of this.
 */
export interface Inspection {
  /** What was asked, as it was understood. */
  understood(request: GenerationRequest): void;
  /** A batch of the answer's events. */
  events(events: readonly GenerationEvent[]): void;
  /** A prompt as the model reads it. */
  prompt(prompt: InspectedPrompt): void;
  /** A further piece of what the model wrote, markers and control tokens included. */
  written(choice: number, text: string): void;
  /** The engine sends this to another server. */
  sent(request: SentRequest): ReceivedAnswer;
}

export interface InspectedPrompt {
  /** The text of its tokens. */
  readonly text: string;
  /** How many characters of the text each token is; 0 for one that is a part of a character. */
  readonly lengths: readonly number[];
  /** Which tokens are control tokens, by their places among the tokens, from 0. */
  readonly control: readonly number[];
  /** What the client wrote, in order. */
  readonly quotes: readonly PromptQuote[];
}

/** A piece of a prompt's text that is a message's. */
export interface PromptQuote {
  /** In characters of the prompt's text; `end` is exclusive. */
  readonly start: number;
  readonly end: number;
  readonly role: string;
}

export interface SentRequest {
  /** With the path, without credentials. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** What is mended in the answer, and where; grows while the answer is read. */
  readonly repairs: readonly RepairPlace[];
}

/** Something that was mended in a source's answer. */
export interface RepairPlace {
  readonly id: string;
  /** Where the frame begins that it was mended in, in characters from the answer's beginning. */
  readonly at: number;
}

/** Hears what another server answers. */
export interface ReceivedAnswer {
  answered(status: number, headers: Readonly<Record<string, string | readonly string[] | undefined>>): void;
  /** A further piece of the body, as text. */
  received(text: string): void;
  /** There is no answer, or no more of it. */
  failed(message: string): void;
}
