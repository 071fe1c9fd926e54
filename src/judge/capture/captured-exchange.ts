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

/** The text of an answer's body; its characters may be cut anywhere. */
export function bodyOf({ pieces }: CapturedResponse): string {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const texts = pieces.map(({ text = "", base64 }) =>
    decoder.decode(base64 === undefined ? encoder.encode(text) : bytesOf(base64), { stream: true }),
  );
  return texts.join("") + decoder.decode();
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

/** Parts of the names of members of a query that hold secrets: keys, tokens, passwords, signatures of URLs. */
const secretNames =
  /key|token|secret|sig|passw|pwd|auth|credential|session|jwt|cookie|(?:^|[-_])(?:code|sas|pass)(?:[-_]|$)/i;

/** A path without the secrets that some servers take in the query: recordings are given to others. */
export function maskedPath(path: string): string {
  return path.replace(/([?&])([^=&#]*)=([^&#]*)/g, (member, mark: string, name: string, value: string) =>
    value !== "" && secretNames.test(decoded(name)) ? `${mark}${name}=[key]` : member,
  );
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
