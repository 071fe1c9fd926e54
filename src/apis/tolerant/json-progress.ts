/** Scans streamed JSON text until its outermost object, array or string is closed. Reads each character once. */
export class JsonProgress {
  #depth = 0;
  #inString = false;
  #escaped = false;

  /** The outermost value is closed. Its content may still be malformed. */
  complete = false;

  push(text: string): void {
    for (let i = 0; i < text.length && !this.complete; i++) {
      const code = text.charCodeAt(i);
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (code === backslash) this.#escaped = true;
        else if (code === quote) {
          this.#inString = false;
          this.complete = this.#depth === 0;
        }
      } else if (code === quote) this.#inString = true;
      else if (code === openBrace || code === openBracket) this.#depth++;
      else if (code === closeBrace || code === closeBracket) this.complete = --this.#depth <= 0;
    }
  }
}

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
