import type { GenerationEnd, GenerationEvent } from "./events.ts";
import type { GenerationRequest } from "./request.ts";

/**
 * Records one generation in full, texts of the conversation included, for a person who inspects it. Most requests are not inspected, and
 * engines do no work for them.
 */
export interface Inspection {
  /** The request as it was parsed. */
  parsedRequest(request: GenerationRequest): void;
  /** A batch of the answer's events. */
  events(events: readonly GenerationEvent[]): void;
  /** The prompt that the model gets. */
  prompt(prompt: InspectedPrompt): void;
  /** A further chunk of the model's raw text, with markers and control tokens. */
  rawText(choice: number, text: string): void;
  /** A request to another server. */
  sent(request: SentRequest): ReceivedAnswer;
}

export interface InspectedPrompt {
  /** The text of its tokens. */
  readonly text: string;
  /** The number of characters of each token; 0 for a part of a character. */
  readonly lengths: readonly number[];
  /** The indices of the control tokens, from 0. */
  readonly control: readonly number[];
  /** The texts of the client's messages, in order. */
  readonly quotes: readonly MessageRange[];
}

/** A range of a prompt's text that comes from a message. */
export interface MessageRange {
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
  /** The adaptations of the request to what the server accepts. */
  readonly adaptations: readonly AdaptationPlace[];
  /**
   * Reads the answer with these headers again, for a person who looks at it: what is read while the answer is served would have to be kept for
   * every request.
   */
  readonly reread: (headers: AnswerHeaders) => AnswerReading;
  /** The answer's events are the generation's; false: the generation has several answers, or corrects this one. */
  readonly isWhole: boolean;
}

/** Reads an answer with status 200 again. */
export interface AnswerReading {
  /** Reads a further chunk, as it was received. Returns the events in it; those of an answer without a stream come with its end. */
  push(text: string): readonly GenerationEvent[];
  /** Ends the answer; `error`: it was cut off. */
  end(error?: Error): readonly GenerationEvent[];
  /** Ends an answer whose rest was not read. */
  abandon(end: GenerationEnd): readonly GenerationEvent[];
  /** The repairs of the chunks that were pushed. */
  readonly repairs: readonly RepairPlace[];
}

/** An adaptation of a request to what its server accepts. */
export interface AdaptationPlace {
  readonly id: string;
  /** The changed member of the request, such as `messages[3].role`. */
  readonly place: string | undefined;
}

/** A repair of a source's answer. */
export interface RepairPlace {
  readonly id: string;
  /** The start of the repaired frame, in characters from the start of the answer. */
  readonly at: number;
}

/** The headers of another server's answer. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Receives another server's answer. */
export interface ReceivedAnswer {
  answered(status: number, headers: AnswerHeaders): void;
  /** A further chunk of the body. */
  received(text: string): void;
  /** The body is complete. */
  ended(): void;
  /** There is no answer, or it broke off. */
  failed(message: string): void;
  /** The rest is not read. */
  abandoned(end: GenerationEnd): void;
}
