/** A request for a path that Truewire does not speak, for an upstream that does. */
export interface PassedRequest {
  readonly method: string;
  /** Without the base (`/v1`), percent-encoded, with the query. */
  readonly path: string;
  /** As received from the client. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Absent: the request has no body. */
  readonly body: AsyncIterable<Uint8Array> | undefined;
  readonly signal: AbortSignal;
}

/** The upstream's answer, unchanged. */
export interface PassedAnswer {
  readonly status: number;
  /** By lower-case names, without those of the connection. */
  readonly headers: Readonly<Record<string, string>>;
  /** Throws if the connection breaks. Returning from the iteration closes it. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** The paths of an upstream that clients reach through Truewire. */
export interface PathPassing {
  /** As configured, such as `/images/*`; `*` matches any text. */
  readonly paths: readonly string[];
  /** Sends a request once. Rejects with `FailureError` if there is no answer. */
  pass(request: PassedRequest): Promise<PassedAnswer>;
}
