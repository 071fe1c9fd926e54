/** A log. The loggers of pino, a package, implement this interface. */
export interface Log {
  /** Whether lines of this level are written; absent: all levels are written. */
  isLevelEnabled?(level: string): boolean;
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

export type LogFields = Readonly<Record<string, unknown>>;

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** Writes errors to the console, one line each, and nothing else: the default of handlers, also where there is no Node. */
export const consoleErrors: Log = {
  ...silentLog,
  isLevelEnabled: (level) => level === "error",
  error: (fields, message) => console.error(`truewire: ${message} ${JSON.stringify(fields)}`),
};

/** The file of `--log-stream`, which contains every streamed event. */
export interface StreamLog {
  /** `sse`: one or more events, each terminated by a blank line. Returns a promise if the disk is slow. */
  write(requestId: string, sse: string): Promise<void> | undefined;
  close(): Promise<void>;
}
