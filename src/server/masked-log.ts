import type { Log, LogFields } from "./log.ts";
import type { Mask } from "./mask.ts";

/** A log whose lines show no secret. `mask` is asked for each line: a configuration may be read again. */
export function maskedLog(log: Log, mask: () => Mask): Log {
  const line =
    (level: keyof Log) =>
    (fields: LogFields, message: string): void =>
      log[level](mask().value(fields), mask().text(message));
  return { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
}
