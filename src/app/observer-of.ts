import type { Observe } from "../core/observe.ts";
import type { Log } from "../server/log.ts";

/** What an engine says goes into the server's log, with the model's name. */
export function observerOf(log: Log, model: string): Observe {
  return (line, level, fields) => log[level]({ model, ...fields }, line);
}
