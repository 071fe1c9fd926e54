import type { ModelSource } from "../../engines/llama/process/model-file.ts";
import type { Engine, ModelInfo } from "../../core/engine.ts";

/** How far a model's download or loading is. */
export interface LoadProgress {
  readonly phase: "download" | "load";
  /** 0 to 1. */
  readonly fraction: number;
}

export interface LoadOptions {
  readonly onProgress: (progress: LoadProgress) => void;
  /** Aborted: nobody wants it any more. */
  readonly signal: AbortSignal;
}

/** A model that can be loaded, and loaded again. Every method rejects with `ModelOpenError`. */
export interface Loadable {
  /** What clients see of it before it is loaded. */
  readonly info: ModelInfo;
  /** Where its file comes from. */
  readonly source: ModelSource;
  /** Bytes that it takes when it is loaded; downloads it where that is needed. Costs little when nothing has changed. */
  measure(options: LoadOptions): Promise<number>;
  load(options: LoadOptions): Promise<Engine>;
}
