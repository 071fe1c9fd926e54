import type { Annotation } from "../../../wire/core/events.ts";
import type { SearchResult } from "../../../wire/core/hosted-tool.ts";

/** In characters. A longer address is no result's. */
const maxUrlLength = 2048;
/** In characters, as in recordings of 2025 and 2026. */
const maxCitedLength = 150;
const begins = ["https://", "http://"];
const ends: ReadonlySet<string> = new Set(" \t\r\n()[]<>{}\"'`|*");

/**
 * Finds the addresses of search results in a text that grows: the model cites a result by its URL, alone or in a Markdown link. Reads each
 * character once.
 */
export class CitationFinder {
  readonly #results = new Map<string, SearchResult>();
  /** The number of characters of the part that were read. */
  #position = 0;
  /** The last characters, as many as an address begins with. */
  #recent = "";
  /** The place of the last opening bracket. */
  #bracket = -1;
  /** The place of the first character of a link's address. */
  #linked = -1;
  #url = "";
  #urlStart = -1;

  /** Adds results that the model has read. */
  add(results: readonly SearchResult[]): void {
    for (const result of results) this.#results.set(result.url, result);
  }

  /** Reads more of a text, and returns the citations that are complete. */
  read(text: string): Annotation[] {
    if (this.#results.size === 0) return [];
    const found: Annotation[] = [];
    for (const character of text) {
      if (this.#urlStart >= 0 && ends.has(character)) this.#endUrl(character, found);
      if (this.#urlStart >= 0) {
        this.#url += character;
        if (this.#url.length > maxUrlLength) this.#urlStart = -1;
      } else this.#search(character);
      this.#position += character.length;
    }
    return found;
  }

  /** Ends the text: the next one is another part. */
  endPart(): Annotation[] {
    const found: Annotation[] = [];
    if (this.#urlStart >= 0) this.#endUrl("", found);
    this.#position = 0;
    this.#recent = "";
    this.#bracket = this.#linked = -1;
    return found;
  }

  #search(character: string): void {
    if (character === "[") this.#bracket = this.#position;
    if (character === "(" && this.#recent.endsWith("]")) this.#linked = this.#position + 1;
    this.#recent = (this.#recent + character).slice(-8);
    const begin = begins.find((one) => this.#recent.endsWith(one));
    if (begin === undefined) return;
    this.#url = begin;
    this.#urlStart = this.#position + 1 - begin.length;
  }

  #endUrl(end: string, found: Annotation[]): void {
    const url = this.#url.replace(/[.,;:!?]{1,4}$/, "");
    const result = this.#results.get(url) ?? this.#results.get(`${url}/`) ?? this.#results.get(url.replace(/\/$/, ""));
    const isLink = end === ")" && this.#linked === this.#urlStart && this.#bracket >= 0;
    if (result) {
      found.push({
        url: result.url,
        title: result.title,
        start: isLink ? this.#bracket : this.#urlStart,
        end: isLink ? this.#position + 1 : this.#urlStart + url.length,
        citedText: result.text.slice(0, maxCitedLength),
      });
    }
    this.#urlStart = -1;
    this.#url = "";
    this.#recent = "";
  }
}
