/** Checks other servers, as `truewire check` does. */
export interface Checker {
  /**
   * Tells events, as `POST /admin/check` sends them (docs/checking.md), until the check has ended; `signal` ends it at once. Throws
   * `FailureError`, in words for whoever asked.
   */
  check(asked: AskedCheck, signal: AbortSignal): AsyncIterable<object>;
}

/** What is to be checked. The key is kept for no longer than the check takes. */
export interface AskedCheck {
  /** The API's base URL, `…/v1`. */
  readonly url: string;
  readonly key?: string;
  /** Default: the first that the server lists. */
  readonly model?: string;
  /** As `--only` has it. */
  readonly only?: readonly string[];
  /** The form that every answer must have. */
  readonly profile?: "lean" | "exact";
}
