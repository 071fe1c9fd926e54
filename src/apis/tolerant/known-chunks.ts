import type { GenerationEvent } from "../../core/events.ts";
import { ChunkTemplate } from "./chunk-template.ts";
import type { HolePath } from "./chunk-template.ts";

/** What the one changing string of a chunk is. */
export type HoleKind = "text" | "reasoning" | "arguments";

/** Where the one string of a chunk stands, below its choice, that became the chunk's one event. */
export interface Hole {
  readonly path: HolePath;
  readonly kind: HoleKind;
}

interface Known<Choice> {
  readonly choice: Choice;
  readonly kind: HoleKind;
  readonly template: ChunkTemplate;
}

/** So many choices may be told apart by their chunks. */
const mostTemplates = 8;

/** The chunks that a stream repeats but for one string, one for each choice; see `ChunkTemplate`. */
export class KnownChunks<Choice> {
  #known: readonly Known<Choice>[] = [];
  /** Learning costs two more parses, so it stops for a source whose chunks never repeat. */
  #learnt = 0;
  #matched = 0;

  /** Passes the changing string of a known chunk to `tell`; false when the chunk is not known, or `tell` returns false. */
  match(
    line: string,
    start: number,
    end: number,
    tell: (choice: Choice, kind: HoleKind, text: string) => boolean,
  ): boolean {
    for (const { choice, kind, template } of this.#known) {
      const text = template.match(line, start, end);
      if (text === null || text === "") continue;
      if (!tell(choice, kind, text)) return false;
      this.#matched++;
      return true;
    }
    return false;
  }

  /** Learns a chunk that became `event` alone. */
  learn(chunk: string, hole: Hole, event: GenerationEvent, choice: Choice): void {
    if (this.#learnt >= mostTemplates && this.#matched < this.#learnt * 2) return;
    const text = changingText(event);
    const template = text === null ? null : ChunkTemplate.learn(chunk, ["choices", 0, ...hole.path], text);
    if (!template) return;
    this.#learnt++;
    const others = this.#known.filter((known) => known.choice !== choice).slice(1 - mostTemplates);
    this.#known = [...others, { choice, kind: hole.kind, template }];
  }

  forget(): void {
    this.#known = [];
  }
}

function changingText(event: GenerationEvent): string | null {
  if (event.type === "text-delta" || event.type === "reasoning-delta") return event.logprobs ? null : event.text;
  return event.type === "tool-call-delta" ? event.arguments : null;
}
