/** A client's own key, for an upstream with `passKey`. No copy of a request as JSON, in a log or for another thread has its text. */
export interface ClientKey {
  /** The headers for an upstream: the client's own form if both have one API, else the form of the upstream's API. */
  headers(source: {
    readonly name: string;
    headers(key: string | undefined): Readonly<Record<string, string>>;
  }): Readonly<Record<string, string>>;
  /** Removes the key from what a server says of it. */
  hiddenIn(text: string): string;
}

/** A key whose text is private to this object. */
export class SentKey implements ClientKey {
  readonly #text: string;
  /** Sent as `Authorization: Bearer`: tokens of logins have no other form. */
  readonly #isBearer: boolean;
  /** The API of the client. */
  readonly #api: string | undefined;

  constructor(text: string, isBearer: boolean, api: string | undefined) {
    this.#text = text;
    this.#isBearer = isBearer;
    this.#api = api;
  }

  headers(source: Parameters<ClientKey["headers"]>[0]): Readonly<Record<string, string>> {
    if (this.#isBearer && this.#api === source.name)
      return { ...source.headers(undefined), authorization: `Bearer ${this.#text}` };
    return source.headers(this.#text);
  }

  toJSON(): string {
    return "[key]";
  }

  hiddenIn(text: string): string {
    return this.#text === "" ? text : text.replaceAll(this.#text, "[key]");
  }
}
