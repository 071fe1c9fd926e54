import { write, writeSync } from "node:fs";
import { inspect } from "node:util";
import colors from "picocolors";
import type { Log, LogFields } from "./log.ts";

export type LoggerFormat = "json" | "pretty";

export type LoggerLevel = "debug" | "info" | "warn" | "error" | "silent";

/** Writes of at most this size to a pipe are atomic: POSIX, PIPE_BUF (4096 bytes on Linux). */
const maxAtomicWrite = 4096;

let stderr: LogLines | undefined;

/**
 * Opens the log on stderr: JSON lines, or readable lines; by default, readable lines on a terminal. `one`: the process is one of several
 * that write the same log; each of its lines has these fields.
 */
export function openLog(level: LoggerLevel, format?: LoggerFormat, one?: { readonly worker?: number }): Log {
  const isTerminal = process.stderr.isTTY === true;
  const lines = (stderr ??= new LogLines(2, one && maxAtomicWrite));
  const palette = isTerminal ? colors : colors.createColors(false);
  const isJson = format === "json" || (!format && !isTerminal);
  const writeLine = (line: string): void => lines.write(isJson ? line : forPeople(line, palette));
  const log = jsonLog(writeLine, level, one?.worker === undefined ? "" : `,"worker":${one.worker}`);
  lines.onLost = (count, why) => log.error({ lines: count, error: why }, "lines of this log are lost");
  return log;
}

/** The numbers of the levels in the log's lines, by which tools know them. Source: the packages bunyan and pino. */
const levelNumbers: ReadonlyMap<string, number> = new Map([
  ["debug", 20],
  ["info", 30],
  ["warn", 40],
  ["error", 50],
]);

/**
 * Returns a log that writes lines of JSON: `{"level":30,"time":1764000000000,…,"msg":"finished"}`, with the time in Unix milliseconds. Lines
 * below `level` are not written. `common`: JSON members for every line, after a comma; "" for no members.
 */
export function jsonLog(writeLine: (line: string) => void, level: LoggerLevel, common: string = ""): Log {
  const least = levelNumbers.get(level) ?? Infinity;
  const isWritten = (name: string): boolean => (levelNumbers.get(name) ?? -Infinity) >= least;
  const writer = (name: string): Log["info"] => {
    if (!isWritten(name)) return () => {};
    const start = `{"level":${levelNumbers.get(name)},"time":`;
    return (fields, message) =>
      writeLine(`${start}${Date.now()}${common}${membersOf(fields)},"msg":${JSON.stringify(message)}}\n`);
  };
  return {
    isLevelEnabled: isWritten,
    debug: writer("debug"),
    info: writer("info"),
    warn: writer("warn"),
    error: writer("error"),
  };
}

/** The fields as members of a JSON object, after a comma; "" for no fields. */
function membersOf(fields: LogFields): string {
  const json = jsonOf(fields);
  return json === "{}" ? "" : `,${json.slice(1, -1)}`;
}

/** A line is written in any case: fields that JSON cannot represent (a cycle, a BigInt) become one text. */
function jsonOf(fields: LogFields): string {
  try {
    return JSON.stringify(fields);
  } catch {
    return JSON.stringify({ fields: inspect(fields) });
  }
}

/** Formats a line of JSON as `12:03:55 finished POST /v1/chat/completions model=x ms=12`. */
export function forPeople(line: string, palette: Palette = colors): string {
  const { level, time, msg, method, path, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const clock = new Date(Number(time)).toTimeString().slice(0, 8);
  const colour = Number(level) >= 50 ? palette.red : Number(level) >= 40 ? palette.yellow : palette.green;
  const request = method === undefined ? "" : ` ${printable(`${String(method)} ${String(path)}`)}`;
  const fields = Object.entries(rest).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    // A cause is a stack and may span lines. Other fields may contain a client's text, which must not control the terminal.
    return ` ${palette.dim(`${name}=`)}${name === "cause" ? text : printable(text)}`;
  });
  // A message may span lines (errors in a configuration), and may quote a model or another server.
  const happened = String(msg).split("\n").map(printable).join("\n");
  return `${palette.dim(clock)} ${colour(happened)}${request}${fields.join("")}\n`;
}

type Palette = Pick<typeof colors, "red" | "yellow" | "green" | "dim">;

/** Escapes control characters as JSON does. */
function printable(text: string): string {
  return text.replace(
    // oxlint-disable-next-line no-control-regex -- the pattern looks for control characters
    /[\u0000-\u001f\u007f-\u009f]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** The number of characters that may wait to be written; further lines are lost. */
const maxWaiting = 4 * 1024 * 1024;
/**
 * After a write, lines are gathered for this time, in milliseconds, or up to this number of characters. Under load, a write for each line
 * took a quarter of a gateway's CPU time.
 */
const gatherMs = 10;
const maxGathered = 64 * 1024;
/** The delay before a failed write is tried again, in milliseconds. */
const retryMs = 250;
/** How long the process waits for a reader when it exits, in milliseconds. */
const exitTimeoutMs = 500;

/**
 * Writes lines to a file descriptor asynchronously, and never fails: a server must not end because the disk of its log is full, or the
 * reader of its log has ended. What cannot be written waits, up to a limit. To a pipe without a reader, nothing more is written.
 */
export class LogLines {
  readonly #fd: number;
  readonly #maxWrite: number;
  /** Lines of this many characters are not gathered any longer. */
  readonly #maxGathered: number;
  #waiting = "";
  /** Runs while lines are gathered. */
  #gathering: NodeJS.Timeout | undefined;
  /** The bytes that are being written. */
  #current: Buffer | undefined;
  #isWriting = false;
  #hasEnded = false;
  #lost = 0;
  /** Called with the number of lost lines, and the reason, when lines can be written again. */
  onLost: (count: number, why: string) => void = () => {};

  /** `maxWrite`: the maximum bytes of one write, if several processes write to the descriptor. Lines are not split. */
  constructor(fd: number, maxWrite: number = Infinity) {
    this.#fd = fd;
    this.#maxWrite = maxWrite;
    this.#maxGathered = Math.min(maxGathered, maxWrite);
    process.once("exit", () => this.#finish());
  }

  write(line: string): void {
    if (this.#hasEnded) return;
    if (this.#waiting.length + line.length > maxWaiting) this.#lost++;
    else this.#waiting += line;
    this.#next();
  }

  /** Writes what waits, unless a write is in progress, or further lines are gathered. */
  #next(): void {
    const { length } = this.#waiting;
    if (length === 0 || this.#current || (this.#gathering && length < this.#maxGathered)) return;
    const lines = this.#wholeLines();
    this.#waiting = this.#waiting.slice(lines.length);
    this.#current = Buffer.from(lines);
    this.#write(this.#current, "");
  }

  /** The lines of the next write; at least one. */
  #wholeLines(): string {
    const waiting = this.#waiting;
    const max = this.#maxWrite;
    if (max === Infinity) return waiting;
    let end = Math.min(max, waiting.length) + 1;
    do end = waiting.lastIndexOf("\n", end - 2) + 1;
    while (end > 1 && Buffer.byteLength(waiting.slice(0, end)) > max);
    return waiting.slice(0, end > 0 ? end : waiting.indexOf("\n") + 1);
  }

  /** `why`: the error of the last attempt. */
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
    clearTimeout(this.#gathering);
    this.#gathering = setTimeout(() => {
      this.#gathering = undefined;
      this.#next();
    }, gatherMs);
    // Must not keep the process alive.
    this.#gathering.unref();
    if (lost > 0) this.onLost(lost, why);
    this.#next();
  }

  #failed(error: NodeJS.ErrnoException): void {
    if (error.code === "EPIPE" || error.code === "EBADF") {
      this.#hasEnded = true;
      this.#current = undefined;
      this.#waiting = "";
      return;
    }
    const again = (): void => {
      if (this.#current) this.#write(this.#current, error.message);
    };
    // Must not keep the process alive.
    setTimeout(again, retryMs).unref();
  }

  /** Writes the last lines when the process exits, if there is a reader. */
  #finish(): void {
    const rest = Buffer.from(this.#waiting);
    // A write in progress is completed by the system.
    let left = this.#current && !this.#isWriting ? Buffer.concat([this.#current, rest]) : rest;
    const deadline = performance.now() + exitTimeoutMs;
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
