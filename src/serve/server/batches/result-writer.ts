import type { JsonObject } from "../../../wire/core/json.ts";
import { inTurns } from "../turns.ts";
import { readResults } from "./batch-input.ts";
import type { ClientBatches } from "./stored-batches.ts";

/** Appends the lines of results to a text in the store. Lines that come while others are written are written together. */
export class ResultWriter {
  readonly #batches: ClientBatches;
  readonly #key: string;
  #exists: boolean;
  #waiting = "";
  #writing: Promise<void> | undefined;

  private constructor(batches: ClientBatches, key: string, exists: boolean) {
    this.#batches = batches;
    this.#key = key;
    this.#exists = exists;
  }

  /**
   * Opens the results under a key. `found` is called with each result that is there. A line that a crash has torn is removed, so that its
   * request runs again.
   */
  static async open(batches: ClientBatches, key: string, found: (result: JsonObject) => void): Promise<ResultWriter> {
    const text = await batches.text(key);
    if (text === undefined) return new ResultWriter(batches, key, false);
    const length = await inTurns(readResults(text, found));
    if (length < text.length) await batches.setText(key, text.slice(0, length));
    return new ResultWriter(batches, key, true);
  }

  /** Resolves when the line is stored. Rejects if the store cannot be reached, or has lost the earlier lines. */
  async add(line: string): Promise<void> {
    this.#waiting += `${line}\n`;
    // What is being written does not have it.
    if (this.#writing) await this.#writing;
    // Another line may have taken it along.
    if (this.#waiting !== "") this.#writing ??= this.#write();
    await this.#writing;
  }

  async #write(): Promise<void> {
    const text = this.#waiting;
    this.#waiting = "";
    try {
      const existed = await this.#batches.append(this.#key, text, !this.#exists);
      if (this.#exists && !existed)
        throw new Error("The store has no room for the results of the batch (files.maxSize).");
      this.#exists = true;
    } finally {
      this.#writing = undefined;
    }
  }
}
