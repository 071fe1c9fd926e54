import { write, writeSync } from "node:fs";
import colors from "picocolors";
import pino from "pino";
import type { Log } from "./log.ts";

export type LogFormat = "json" | "pretty";

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** What is written to a pipe at once, by one of several processes, stays together: POSIX, PIPE_BUF (Linux has 4096 bytes). */
const mostAtOnce = 4096;

let stderr: LogLines | undefined;

/**
 * The log on stderr: JSON lines, or lines for people; where no form is asked for, these are for a terminal. `one`: the
 * process is one of several that write the same log; each of its lines has these fields.
 */
export function openLog(level: LogLevel, format?: LogFormat, one?: { readonly worker?: number }): Log {
  const options = { level, base: one?.worker === undefined ? null : { worker: one.worker } };
  const isTerminal = process.stderr.isTTY === true;
  const lines = (stderr ??= new LogLines(2, one && mostAtOnce));
  const palette = isTerminal ? colors : colors.createColors(false);
  const isJson = format === "json" || (!format && !isTerminal);
  const log = pino(options, isJson ? lines : { write: (line) => lines.write(forPeople(line, palette)) });
  lines.onLost = (count, why) => log.error({ lines: count, error: why }, "lines of this log are lost");
  return log;
}

/** A line of JSON, as `12:03:55 finished POST /v1/chat/completions model=x ms=12`. */
export function forPeople(line: string, palette: Palette = colors): string {
  const { level, time, msg, method, path, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const clock = new Date(Number(time)).toTimeString().slice(0, 8);
  const colour = Number(level) >= 50 ? palette.red : Number(level) >= 40 ? palette.yellow : palette.green;
  const request = method === undefined ? "" : ` ${printable(`${String(method)} ${String(path)}`)}`;
  const fields = Object.entries(rest).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    // A cause is our own text and may span lines; everything else may hold a client's text, which must not control the terminal.
    return ` ${palette.dim(`${name}=`)}${name === "cause" ? text : printable(text)}`;
  });
  // A message may span lines (the mistakes in a configuration), and may quote a model or another server.
  const happened = String(msg).split("\n").map(printable).join("\n");
  return `${palette.dim(clock)} ${colour(happened)}${request}${fields.join("")}\n`;
}

type Palette = Pick<typeof colors, "red" | "yellow" | "green" | "dim">;

/** Without control characters, which are shown as in JSON. */
function printable(text: string): string {
  return text.replace(
    // oxlint-disable-next-line no-control-regex -- the pattern looks for control characters
    /[\u0000-\u001f\u007f-\u009f]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

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
