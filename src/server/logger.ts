import pino from "pino";
import colors from "picocolors";
import { LogLines } from "./log-lines.ts";
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
