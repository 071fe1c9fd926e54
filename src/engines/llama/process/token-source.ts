import type { Token } from "node-llama-cpp";
import type { LogitWindow } from "./draw-token.ts";

/** Where a choice's tokens come from: it evaluates what is new in a sequence and samples the token that follows. */
export interface TokenSource {
  /** How the sequence is driven; neighbours of one kind in a step reach the library's queue in the order they were asked. */
  readonly kind: "native" | "raw";

  /** Evaluates `input` (the prompt's rest, then each sampled token) and samples. */
  next(input: readonly Token[]): Promise<SampledToken>;

  /** Frees what the source holds; the sequence keeps its state. */
  release(): Promise<void>;
}

export interface SampledToken {
  readonly token: Token;
  /** The raw distribution that it was drawn from, where it was asked for. */
  readonly window?: LogitWindow;
}
