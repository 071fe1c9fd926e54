/** One request and its answer as they went over the wire. */
export interface CapturedExchange {
  /** Where it was read from, for messages: `session.jsonl:3`. */
  readonly from: string;
  readonly request: CapturedRequest;
  readonly response: CapturedResponse;
}

export interface CapturedRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  /** Absent: the capture does not show it, so any will do. */
  readonly body?: string;
}

export interface CapturedResponse {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The body, as it came; `ms` since the request was sent. */
  readonly pieces: readonly CapturedPiece[];
  /** The connection broke before the answer was complete. */
  readonly brokeOff?: boolean;
}

export interface CapturedPiece {
  readonly ms: number;
  /** Exactly one of the two: bytes that are no UTF-8 by themselves, such as a cut character, are in base64. */
  readonly text?: string;
  readonly base64?: string;
}
