import type { Format } from "../../formats/format.ts";
import { TextReader } from "../../formats/text-reader.ts";
import { unknownToolsWarning } from "../../formats/unknown-tools.ts";
import { ChoiceAssembler } from "../../core/choice-assembler.ts";
import type { FinishEvent, GenerationEvent, TextDeltaEvent, TokenLogprob } from "../../core/events.ts";
import type { Tool } from "../../core/message.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { callsWithoutCall } from "../../apis/tolerant/read-failure.ts";
import { MarkerReader } from "../../formats/marker-reader.ts";

/** What reads a choice's text: a format's reader, or one that finds the format by its markers. */
export interface ChoiceTextReader {
  push(text: string, logprob?: TokenLogprob): GenerationEvent[];
  end(): GenerationEvent[];
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

  /** `warn` is called for calls that stayed text because the request has no such tool. */
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

  /** The events that replace these. */
  readonly transform = (events: GenerationEvent[]): GenerationEvent[] => {
    const out: GenerationEvent[] = [];
    for (const event of events) {
      if (!("choice" in event) || event.type === "extra" || event.type === "progress") {
        out.push(event);
        continue;
      }
      const choice = this.#choice(event.choice);
      const { reader, assembler } = choice;
      if (event.type === "text-delta") for (const token of tokensOf(event)) assembler.add(reader.push(...token));
      else if (event.type !== "finish") assembler.add([event], "source");
      else if (!this.#finish(event, choice)) {
        out.push(...assembler.take(), {
          type: "end",
          end: { kind: "upstream-error", failure: callsWithoutCall() },
        });
        return out;
      }
      for (const told of assembler.take()) out.push(told);
    }
    return out;
  };

  /** False: calls were announced and none is there; the generation has failed. */
  #finish({ reason, stop }: FinishEvent, { reader, assembler }: Choice): boolean {
    assembler.add(reader.end());
    const warning = unknownToolsWarning(reader.unknownTools);
    if (warning !== null) this.#warn(warning);
    if (!assembler.hasCalls && (reason === "tool-calls" || reason === "function-call")) return false;
    assembler.finish(reason, stop);
    return true;
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
      this.#choices.set(number, (choice = { reader, assembler: new ChoiceAssembler(number) }));
    }
    return choice;
  }
}

interface Choice {
  readonly reader: ChoiceTextReader;
  readonly assembler: ChoiceAssembler;
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
