/** One answer as it was captured, with what is known around it. */
export interface Capture {
  readonly name: string;
  /** The answer's body. */
  readonly body: string;
  /** The request's JSON. */
  readonly request?: Readonly<Record<string, unknown>>;
  readonly method?: string;
  readonly path?: string;
  readonly status?: number;
  /** Of the answer, by lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
  /** false: the connection broke before the answer's end. */
  readonly complete?: boolean;
}
