import type { Format } from "../../formats/format.ts";
import { TextReader } from "../../formats/text-reader.ts";
import { unknownToolsWarning } from "../../formats/unknown-tools.ts";
import type { GenerationEvent, TextDeltaEvent, TokenLogprob } from "../../generation/event.ts";
import type { Tool } from "../../generation/message.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import { callsWithoutCall } from "../../wire/tolerant/read-failure.ts";
import { MarkerReader } from "../../formats/marker-reader.ts";

/** What reads a choice's text: a format's reader, or one that finds the format by its markers. */
export interface ChoiceTextReader {
  push(text: string, logprob?: TokenLogprob): GenerationEvent[];
  end(): GenerationEvent[];
  readonly sawCalls: boolean;
  readonly unknownTools: ReadonlySet<string>;
}

/**
 * Finds tool calls and reasoning that an upstream left in the text, between its reader and the wire. Calls that the upstream did tell
 * keep their places; those found in the text get the next indices.
 */
export class TextStage {
  readonly #format: Format | "auto";
  readonly #newCallId: () => string;
  readonly #tools: readonly Tool[];
  readonly #callsAllowed: boolean;
  readonly #separateReasoning: boolean;
  readonly #warn: (warning: string) => void;
  #choices = new Map<number, Choice>();

  /** `warn` hears of calls that stayed text because the request has no such tool (requirement T6). */
  constructor(
    format: Format | "auto",
    request: GenerationRequest,
    newCallId: () => string,
    warn: (warning: string) => void = () => {},
  ) {
    this.#format = format;
    this.#newCallId = newCallId;
    this.#separateReasoning = request.reasoning?.inText !== true;
    this.#warn = warn;
    this.#tools = request.tools ?? [];
    this.#callsAllowed = this.#tools.length > 0 && request.toolChoice?.type !== "none";
  }

  /** What goes on in place of these events. */
  readonly transform = (events: GenerationEvent[]): GenerationEvent[] => {
    const out: GenerationEvent[] = [];
    for (const event of events) {
      if (event.type === "text-delta") this.#read(event, out);
      else if (event.type === "finish") {
        if (!this.#finish(event, out)) return out;
      } else if (
        event.type === "tool-call-start" ||
        event.type === "tool-call-delta" ||
        event.type === "tool-call-end"
      ) {
        this.#tell([event], this.#choice(event.choice), "source", out);
      } else out.push(event);
    }
    return out;
  };

  #read(event: TextDeltaEvent, out: GenerationEvent[]): void {
    const choice = this.#choice(event.choice);
    for (const [text, logprob] of tokensOf(event)) this.#tell(choice.reader.push(text, logprob), choice, "text", out);
  }

  /** False: calls were announced and none is there; the generation has ended. */
  #finish(event: Extract<GenerationEvent, { type: "finish" }>, out: GenerationEvent[]): boolean {
    const choice = this.#choice(event.choice);
    this.#tell(choice.reader.end(), choice, "text", out);
    const warning = unknownToolsWarning(choice.reader.unknownTools);
    if (warning !== null) this.#warn(warning);
    const { reason } = event;
    if (choice.calls > 0) out.push({ ...event, reason: reason === "stop" ? "tool-calls" : reason });
    else if (reason === "tool-calls" || reason === "function-call") {
      out.push({ type: "end", end: { kind: "upstream-error", failure: callsWithoutCall() } });
      return false;
    } else out.push(event);
    return true;
  }

  #tell(events: readonly GenerationEvent[], choice: Choice, from: "source" | "text", out: GenerationEvent[]): void {
    for (const event of events) {
      if (event.type === "tool-call-start") {
        const index = choice.calls++;
        choice.indices.set(`${from} ${event.index}`, index);
        out.push({ ...event, index });
      } else if (event.type === "tool-call-delta" || event.type === "tool-call-end") {
        out.push({ ...event, index: choice.indices.get(`${from} ${event.index}`) ?? event.index });
      } else out.push(event);
    }
  }

  #choice(number: number): Choice {
    let choice = this.#choices.get(number);
    if (!choice) {
      const options = {
        choice: number,
        newCallId: this.#newCallId,
        tools: this.#tools,
        callsAllowed: this.#callsAllowed,
        separateReasoning: this.#separateReasoning,
      };
      const reader =
        this.#format === "auto" ? new MarkerReader(options) : new TextReader({ ...options, format: this.#format });
      this.#choices.set(number, (choice = { reader, calls: 0, indices: new Map() }));
    }
    return choice;
  }
}

interface Choice {
  readonly reader: ChoiceTextReader;
  calls: number;
  /** Where a call came from and its index there → its index in the answer. */
  readonly indices: Map<string, number>;
}

/** The delta's tokens one by one, where its logprobs tell them; else its text with the last logprob. */
function tokensOf({
  text,
  logprobs = [],
}: TextDeltaEvent): readonly (readonly [text: string, logprob?: TokenLogprob])[] {
  if (logprobs.length === 0) return [[text]];
  if (logprobs.map(({ token }) => token).join("") === text) return logprobs.map((logprob) => [logprob.token, logprob]);
  const last = logprobs.at(-1);
  return last ? [[text, last]] : [[text]];
}
