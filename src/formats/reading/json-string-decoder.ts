/** Tells what a JSON string says while it comes, its opening quote passed. A character that is written in two escapes comes whole. */
export class JsonStringDecoder {
  /** The closing quote has come. */
  closed = false;
  /** Behind the last character that was read. */
  pos = 0;
  #escape = "";
  /** The first half of a character beyond U+FFFF. */
  #half = "";

  /** Reads on from `from`; gives what this piece of the string says. */
  read(text: string, from: number): string {
    let decoded = this.#half;
    this.#half = "";
    let i = from;
    while (i < text.length && !this.closed) {
      const code = text.charCodeAt(i);
      if (this.#escape !== "") {
        this.#escape += text[i];
        i++;
        if (this.#escape.length < (this.#escape[1] === "u" ? 6 : 2)) continue;
        decoded += meaningOf(this.#escape);
        this.#escape = "";
      } else if (code === 34 || code === 92) {
        if (code === 34) this.closed = true;
        else this.#escape = "\\";
        i++;
      } else {
        const start = i;
        while (i < text.length && text.charCodeAt(i) !== 34 && text.charCodeAt(i) !== 92) i++;
        decoded += text.slice(start, i);
      }
    }
    this.pos = i;
    if (this.closed || !endsInHalf(decoded)) return decoded;
    this.#half = decoded.slice(-1);
    return decoded.slice(0, -1);
  }

  /** No more will come: what was held for its other half. */
  end(): string {
    const half = this.#half;
    this.#half = "";
    return half;
  }
}

function endsInHalf(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
}

function meaningOf(escape: string): string {
  try {
    return String(JSON.parse(`"${escape}"`));
  } catch {
    return escape;
  }
}
