import type { HostedFailure, HostedFailureCode, HostedToolExecutor } from "../../wire/core/hosted-tool.ts";
import type { LogListener } from "../../wire/core/generation-observer.ts";

/** The limits of an executor, with which it is opened. */
export interface ExecutorLimits {
  /** Of one call, in milliseconds. */
  readonly timeoutMs: number;
  /** Of one answer. */
  readonly maxCalls: number;
  /** The longest result, in characters: of its texts, and of its images and files as base64. */
  readonly maxOutput: number;
}

/** What every executor is opened with. */
export interface ExecutorSetup extends ExecutorLimits {
  readonly name: string;
  /** Receives what concerns the configuration: addresses and reasons that clients are not told. */
  readonly log?: LogListener | undefined;
}

/** An executor that holds something open: a process, connections, a thread. */
export interface OpenExecutor extends HostedToolExecutor {
  close(): Promise<void>;
}

export function failure(code: HostedFailureCode, message: string, status?: number): HostedFailure {
  return { kind: "failure", code, message, ...(status !== undefined && { status }) };
}

/** The outcome of a call that was given up: its time is over, or the client has left. */
export const abandoned: HostedFailure = failure("timeout", "The tool was stopped before it had a result.");

/** Shows a value of a model or a foreign server in a message, on one line. */
export function shown(value: unknown, maxLength = 200): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  const line = text.slice(0, maxLength * 4).replace(/\s+/g, " ");
  return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line;
}

/** Texts that share a limit of characters. */
export class OutputBudget {
  #left: number;

  constructor(maxOutput: number) {
    this.#left = maxOutput;
  }

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  /** The text, or its beginning with a note for the model. Does not end within a character. */
  text(text: string): string {
    const isCut = text.length > this.#left;
    const kept = isCut ? text.slice(0, Math.max(0, this.#left)).replace(/[\uD800-\uDBFF]$/, "") : text;
    this.#left -= text.length;
    return isCut ? `${kept}\n[The rest was left out: the result was too long.]` : kept;
  }

  /** Whether something that cannot be cut fits. */
  takes(length: number): boolean {
    if (length > this.#left) return false;
    this.#left -= length;
    return true;
  }
}
