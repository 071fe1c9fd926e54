import type { ServedEngine } from "../model-directory.ts";
import type { Outcome, RequestRecord } from "../request-record.ts";

/** Counts what happens, and tells it as Prometheus reads it. */
export interface Metrics {
  /** A request has ended, whatever its path. */
  observe(record: RequestRecord, outcome: Outcome): void;
  readonly contentType: string;
  /** All numbers; what the engines tell of themselves is asked of them now. */
  text(engines: readonly ServedEngine[], openRequests: number): Promise<string>;
  /** Nothing is measured any more. */
  close(): void;
}
