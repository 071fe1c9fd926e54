import type { Log } from "./log.ts";
import type { Mask } from "./mask.ts";

type Level = Exclude<keyof Log, "isLevelEnabled">;

/** A log whose lines show no secret. `mask` is asked for each line: a configuration may be read again. */
export function maskedLog(log: Log, mask: () => Mask): Log {
  const line =
    (level: Level): Log[Level] =>
    (fields, message) => {
      // What nobody reads need not be looked through.
      if (log.isLevelEnabled?.(level) === false) return;
      log[level](mask().value(fields), mask().text(message));
    };
  return { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
}
