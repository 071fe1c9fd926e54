/**
 * How an API speaks by WebSocket: a message asks for an answer, and the events of its stream come back, each a message of its own. The
 * server reads JSON, takes one request after the other, and leaves out what only a stream of HTTP needs.
 */
export interface PortSocket {
  /** A message (parsed JSON of any shape) as the body of a request that streams. Throws `FailureError`. */
  readMessage(message: unknown): unknown;
  /** The message that tells a failure. `body`: the JSON that HTTP would have. */
  writeFailure(status: number, body: string): string;
  /** Of a request that comes while another one is being answered; a body as above. */
  readonly busy: string;
  /** Of a connection that has lasted as long as one may; a body as above. */
  readonly tooOld: string;
}
