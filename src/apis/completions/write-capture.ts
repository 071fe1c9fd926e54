import type { GenerationEnd, GenerationEvent, TokenLogprob, Usage } from "../../core/events.ts";
import type { CaptureForm } from "../capture-form.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import { memberText, passedMembers } from "../extras.ts";
import { jsonText } from "../json-text.ts";
import type { Profile } from "../profile.ts";
import { doneText, errorEnd } from "../sse-text.ts";
import { completionLogprobs } from "./completion-logprobs.ts";
import { completionForms, completionFinishReason } from "./form.ts";
import type { CompletionForm } from "./form.ts";
import { CompletionStreamWriter, CompletionEnvelope } from "./write-stream.ts";

type Batches = readonly (readonly GenerationEvent[])[];

/** Writes the stream of OpenAI again from which `batches` were read, one batch for each chunk. */
export function writeCompletionCapture(batches: Batches, context: ChoicesContext, capture: CaptureForm): string {
  return writers[context.profile.name](batches, context, capture);
}

const writers: Readonly<Record<Profile["name"], typeof writeCompletionCapture>> = {
  lean(batches, context, { usage }) {
    const writer = new CompletionStreamWriter(context, { ...completionForms.lean, nullUsage: usage });
    return batches.map((batch) => writer.write(batch)).join("");
  },
  exact(batches, context, { usage }) {
    const replay = new ChunkReplay(context, { ...completionForms.exact, nullUsage: usage });
    return batches.map((batch) => replay.chunk(batch)).join("");
  },
};

/** The part of a chunk that belongs to one choice. */
interface ChoicePart {
  text: string;
  tokens: TokenLogprob[];
  finish: string | null;
  /** As `memberText`. */
  extras: string;
}

/**
 * Writes the chunks of a capture as they came: OpenAI sends the finish reason with the last text or alone, and a chunk may have several
 * choices.
 */
class ChunkReplay {
  readonly #context: ChoicesContext;
  readonly #form: CompletionForm;
  #envelope: CompletionEnvelope | undefined;
  #usage: Usage | undefined;
  /** Offset of the next token's text in each choice, in characters. */
  readonly #offsets = new Map<number, number>();
  /** Members for the next chunk, as `memberText`. */
  #extras = "";

  constructor(context: ChoicesContext, form: CompletionForm) {
    this.#context = context;
    this.#form = form;
  }

  chunk(events: readonly GenerationEvent[]): string {
    const parts = new Map<number, ChoicePart>();
    const partOf = (choice: number): ChoicePart => {
      const part = parts.get(choice) ?? { text: "", tokens: [], finish: null, extras: "" };
      parts.set(choice, part);
      return part;
    };
    let end: GenerationEnd | undefined;
    for (const event of events) {
      if (event.type === "start") {
        this.#envelope ??= new CompletionEnvelope(this.#context, this.#form, event.source);
      } else if (event.type === "text-delta") {
        const part = partOf(event.choice);
        part.text += event.text;
        part.tokens.push(...(event.logprobs ?? []));
      } else if (event.type === "finish") {
        partOf(event.choice).finish = completionFinishReason(event.reason);
      } else if (event.type === "usage") {
        this.#usage = event.usage;
      } else if (event.type === "extra") {
        const members = memberText(passedMembers(event, this.#context));
        if (event.place === "chunk") this.#extras += members;
        else if (event.place === "choice" && members !== "" && event.choice !== undefined)
          partOf(event.choice).extras += members;
      } else if (event.type === "end") end = event.end;
    }
    return (parts.size === 0 ? "" : this.#chunkOf(parts)) + (end ? this.#end(end) : "");
  }

  #chunkOf(parts: ReadonlyMap<number, ChoicePart>): string {
    const envelope = (this.#envelope ??= new CompletionEnvelope(this.#context, this.#form, undefined));
    const choices = Array.from(parts, ([choice, { text, tokens, finish, extras }]) =>
      envelope.choice(choice, JSON.stringify(text), this.#logprobs(choice, tokens), finish, extras),
    );
    const extras = this.#extras;
    this.#extras = "";
    return envelope.chunk(choices.join(","), extras);
  }

  #logprobs(choice: number, tokens: readonly TokenLogprob[]): string {
    if (tokens.length === 0) return "null";
    const { value, nextOffset } = completionLogprobs(tokens, this.#offsets.get(choice) ?? 0, this.#form.number);
    this.#offsets.set(choice, nextOffset);
    return jsonText(value);
  }

  #end(end: GenerationEnd): string {
    if ("failure" in end) return errorEnd(end.failure);
    const usage = this.#usage ? JSON.stringify(this.#form.usage(this.#usage)) : "";
    if (usage === "" && this.#extras === "") return doneText;
    const envelope = (this.#envelope ??= new CompletionEnvelope(this.#context, this.#form, undefined));
    return envelope.closingChunk(usage, this.#extras) + doneText;
  }
}
