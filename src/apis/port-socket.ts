/**
 * An API over WebSocket: each message is a request, and each event of its stream is returned as a message. The server parses JSON,
 * processes one request after the other, and omits what only HTTP streams need.
 */
export interface PortSocket {
  /** Converts a message (parsed JSON of any shape) to the body of a streaming request. Throws `FailureError`. */
  readMessage(message: unknown): unknown;
  /** The message for a failure. `body`: the JSON of the HTTP answer. */
  writeFailure(status: number, body: string): string;
  /** The failure of a request during another one; a body as above. */
  readonly busy: string;
  /** The failure of a connection that has reached its maximum duration; a body as above. */
  readonly tooOld: string;
}
