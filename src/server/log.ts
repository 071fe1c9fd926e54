/** Where this room tells what happens; pino's loggers have this form. */
export interface Log {
  /** Whether lines of this level are written; absent: all are. */
  isLevelEnabled?(level: string): boolean;
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

export type LogFields = Readonly<Record<string, unknown>>;

export const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** Where every streamed event is written when `--log-stream` asks for it. */
export interface StreamLog {
  /** `sse` is one or more whole events, each ended by a blank line. A promise: the disk is slow, wait for it. */
  write(requestId: string, sse: string): Promise<void> | undefined;
  close(): Promise<void>;
}
