/** Why a model was not opened. */
export type ModelOpenReason =
  | "no-such-file"
  | "not-a-gguf"
  | "unknown-architecture"
  | "not-enough-memory"
  | "library-missing"
  | "download-failed"
  | "load-failed";

/** A model cannot be opened. `message` is one sentence that says what to do; the command line prints it and exits with 1. */
export class ModelOpenError extends Error {
  readonly reason: ModelOpenReason;

  constructor(reason: ModelOpenReason, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "ModelOpenError";
    this.reason = reason;
  }
}
