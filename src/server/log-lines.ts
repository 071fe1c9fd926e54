import { write, writeSync } from "node:fs";

/** So many characters may wait to be written; lines beyond that are lost. */
const mostWaiting = 4 * 1024 * 1024;
/** What cannot be written is tried again after so many milliseconds. */
const pauseMs = 250;
/** At its end, the process waits for a reader no longer than so many milliseconds. */
const patienceAtExitMs = 500;

/**
 * Writes lines to a file descriptor, without waiting for it and without ever failing: a server must not end because the disk of its log is
 * full, or because nobody reads it any more. What cannot be written waits, up to a bound. A pipe whose reader is gone is left alone for
 * good.
 */
export class LogLines {
  readonly #fd: number;
  readonly #mostAtOnce: number;
  #waiting = "";
  /** What is being written. */
  #current: Buffer | undefined;
  #isWriting = false;
  #isOver = false;
  #lost = 0;
  /** Is told how many lines were lost, and why, when lines can be written again. */
  onLost: (count: number, why: string) => void = () => {};

  /** `mostAtOnce`: several processes write there, and so many bytes of whole lines stay together. */
  constructor(fd: number, mostAtOnce: number = Infinity) {
    this.#fd = fd;
    this.#mostAtOnce = mostAtOnce;
    process.once("exit", () => this.#finish());
  }

  write(line: string): void {
    if (this.#isOver) return;
    if (this.#waiting.length + line.length > mostWaiting) this.#lost++;
    else this.#waiting += line;
    if (!this.#current) this.#next();
  }

  #next(): void {
    if (this.#waiting === "") return;
    const lines = this.#wholeLines();
    this.#waiting = this.#waiting.slice(lines.length);
    this.#current = Buffer.from(lines);
    this.#write(this.#current, "");
  }

  /** As many lines as may be written at once; one at least. */
  #wholeLines(): string {
    const waiting = this.#waiting;
    const most = this.#mostAtOnce;
    if (most === Infinity) return waiting;
    let end = Math.min(most, waiting.length) + 1;
    do end = waiting.lastIndexOf("\n", end - 2) + 1;
    while (end > 1 && Buffer.byteLength(waiting.slice(0, end)) > most);
    return waiting.slice(0, end > 0 ? end : waiting.indexOf("\n") + 1);
  }

  /** `why`: how the attempt before failed. */
  #write(buffer: Buffer, why: string): void {
    this.#isWriting = true;
    write(this.#fd, buffer, (error, written) => {
      this.#isWriting = false;
      if (error) this.#failed(error);
      else if (written < buffer.length) this.#write((this.#current = buffer.subarray(written)), why);
      else this.#written(why);
    });
  }

  #written(why: string): void {
    this.#current = undefined;
    const lost = this.#lost;
    this.#lost = 0;
    if (lost > 0) this.onLost(lost, why);
    if (!this.#current) this.#next();
  }

  #failed(error: NodeJS.ErrnoException): void {
    if (error.code === "EPIPE" || error.code === "EBADF") {
      this.#isOver = true;
      this.#current = undefined;
      this.#waiting = "";
      return;
    }
    const again = (): void => {
      if (this.#current) this.#write(this.#current, error.message);
    };
    // Nothing that would keep the process from ending.
    setTimeout(again, pauseMs).unref();
  }

  /** The process ends: the last lines are written, if somebody takes them. */
  #finish(): void {
    const rest = Buffer.from(this.#waiting);
    // What is being written is in the system's hands.
    let left = this.#current && !this.#isWriting ? Buffer.concat([this.#current, rest]) : rest;
    const deadline = performance.now() + patienceAtExitMs;
    while (left.length > 0) {
      try {
        left = left.subarray(writeSync(this.#fd, left));
      } catch (error) {
        const isFull = error instanceof Error && "code" in error && error.code === "EAGAIN";
        if (!isFull || performance.now() > deadline) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
      }
    }
  }
}
