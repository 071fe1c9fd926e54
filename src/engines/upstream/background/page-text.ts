import { Buffer } from "node:buffer";
import { Tokenizer } from "htmlparser2";
import type { PageText } from "./background.ts";
import { BoundedText, documentText } from "./document-text.ts";

/** The names of documents that `documentText` reads by their bytes. */
const pdf = "application/pdf";
/** Text that is not HTML. */
const plainTypes =
  /^(?:text\/|application\/(?:json|xml|javascript|ecmascript|yaml|x-yaml|toml|x-ndjson)$)|\+(?:json|xml)$/;
const htmlTypes = /^(?:text\/html|application\/xhtml\+xml)$/;

/**
 * Reads the text of a page: of HTML, of a text in the encoding that it states, or of a document, by its first bytes. `contentType`: the header
 * of its answer, "" if it had none; `url`: where it is, for its links. Throws an Error with a reason, which begins with "its type" for types
 * that have no text.
 */
export async function pageText(bytes: Uint8Array, contentType: string, url: string): Promise<PageText> {
  const [type = "", ...parameters] = contentType.split(";");
  const stated = type.trim().toLowerCase();
  const head = Buffer.from(bytes.subarray(0, 1024)).toString("latin1");
  if (head.includes("%PDF-") || head.startsWith("PK")) {
    const { text, isCut } = await documentText(bytes);
    return { text, isCut, mediaType: head.includes("%PDF-") ? pdf : stated || "application/octet-stream" };
  }
  const isHtml = htmlTypes.test(stated) || (stated === "" && /<(?:!doctype|html|head|body|title|p|div)\b/i.test(head));
  if (!isHtml && stated !== "" && !plainTypes.test(stated))
    throw new Error(`its type ${stated.slice(0, 100)} is neither text nor a document that can be read`);
  const charset = parameters.map((parameter) => /^\s*charset="?([\w:.-]+)/i.exec(parameter)?.[1]).find(Boolean);
  const text = decoded(bytes, charset ?? (isHtml ? charsetIn(head) : undefined));
  if (isHtml) return htmlText(text, url);
  if (text.includes("\0")) throw new Error("its type is not text: it has zero bytes");
  return { ...new BoundedText().add(text).result(), mediaType: stated || "text/plain" };
}

/** Makes text of HTML. `url`: where the page is. Throws an Error with a reason if it has no text. Linear in the length of the page. */
export function htmlText(html: string, url: string): PageText {
  return new HtmlReader(html, url).read();
}

/** The encoding that a page states in its first 1024 bytes. Source: https://html.spec.whatwg.org, "prescan a byte stream". */
function charsetIn(head: string): string | undefined {
  return /<meta\b[^>]{0,500}?charset\s*=\s*["']?([\w:.-]+)/i.exec(head)?.[1];
}

/** A mark at the beginning wins over what is stated; an encoding that is not known is taken for UTF-8. */
function decoded(bytes: Uint8Array, charset = "utf-8"): string {
  const [first, second] = bytes;
  const marked =
    first === 0xff && second === 0xfe ? "utf-16le" : first === 0xfe && second === 0xff ? "utf-16be" : undefined;
  let decoder: InstanceType<typeof TextDecoder>;
  try {
    decoder = new TextDecoder(marked ?? charset);
  } catch {
    decoder = new TextDecoder();
  }
  const text = decoder.decode(bytes);
  // Node 20 decodes it as ISO-8859-1 (nodejs/node#56542).
  if (decoder.encoding !== "windows-1252") return text;
  return text.replace(/[\x80-\x9f]/g, (character: string) => windows1252[character.charCodeAt(0) - 0x80] ?? character);
}

/** The characters of the bytes 0x80 to 0x9f. Source: https://encoding.spec.whatwg.org/index-windows-1252.txt. */
const windows1252 = "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ";

/** Elements whose contents are not text of the page. */
const skipped = new Set(["script", "style", "template", "svg", "iframe", "object", "canvas", "audio", "video"]);
/** Elements that begin on a new line, and with 2 after an empty one. */
const lineBreaks: Readonly<Record<string, 1 | 2>> = {
  ...Object.fromEntries(
    ["p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote", "table"].map((name) => [name, 2]),
  ),
  ...Object.fromEntries(
    ["div", "section", "article", "main", "nav", "header", "footer", "aside", "form", "fieldset", "address"].map(
      (name) => [name, 1],
    ),
  ),
  ...Object.fromEntries(
    ["ul", "ol", "dl", "dt", "dd", "li", "tr", "figure", "figcaption", "caption", "details", "summary", "option"].map(
      (name) => [name, 1],
    ),
  ),
};
/** Longer addresses are left out. In characters. */
const maxLink = 500;
const maxTitle = 300;

/** Attributes that are read; of all others nothing is kept. */
type AttributeName = "href" | "alt" | "hidden" | "style";
type Attributes = Partial<Record<AttributeName, string>>;
const attributeNames: ReadonlySet<string> = new Set<AttributeName>(["href", "alt", "hidden", "style"]);

/**
 * Makes text of HTML by its tokens, without a tree: headings, lists and links as in Markdown, rows of tables with `|`. What is hidden, scripts
 * and styles are left out. It knows nothing of the elements that are open: htmlparser2's own parser looks each end up in a list of them, which
 * takes quadratic time on pages that only open elements.
 */
class HtmlReader {
  readonly #html: string;
  readonly #text = new BoundedText();
  #base: string;
  #title = "";
  #isTitle = false;
  /** The tag that is read. */
  #name = "";
  #attributes: Attributes = {};
  #attribute: AttributeName | undefined;
  #value = "";
  /** The element whose content is left out, and how many of its name are open in it. */
  #skips: { readonly name: string; depth: number } | undefined;
  /** Line breaks, and a space, that come before the next text. */
  #breaks: 0 | 1 | 2 = 0;
  #space = false;
  #isEmpty = true;
  #pre = 0;
  /** The address of the open link, and whether it has text. */
  #link: { readonly url: string; hasText: boolean } | undefined;

  constructor(html: string, url: string) {
    this.#html = html;
    this.#base = url;
  }

  read(): PageText {
    const html = this.#html;
    const ignored = (): void => {};
    const tokenizer = new Tokenizer(
      { decodeEntities: true },
      {
        onopentagname: (start, end) => {
          this.#name = nameIn(html, start, end);
          this.#attributes = {};
        },
        onattribname: (start, end) => {
          const name = nameIn(html, start, end);
          this.#attribute = attributeNames.has(name) ? (name as AttributeName) : undefined;
          this.#value = "";
        },
        onattribdata: (start, end) => {
          if (this.#attribute) this.#value += html.slice(start, end);
        },
        onattribentity: (code) => {
          if (this.#attribute) this.#value += String.fromCodePoint(code);
        },
        onattribend: () => {
          // The first of two attributes with one name counts.
          if (this.#attribute) this.#attributes[this.#attribute] ??= this.#value;
        },
        onopentagend: () => this.#open(this.#name, this.#attributes),
        // Only foreign elements end here.
        onselfclosingtag: () => {
          if (!this.#skips && this.#name !== "svg") this.#open(this.#name, this.#attributes);
        },
        onclosetag: (start, end) => this.#close(nameIn(html, start, end)),
        ontext: (start, end) => this.#add(html.slice(start, end)),
        ontextentity: (code) => this.#add(String.fromCodePoint(code)),
        oncdata: ignored,
        oncomment: ignored,
        ondeclaration: ignored,
        onprocessinginstruction: ignored,
        onend: ignored,
      },
    );
    tokenizer.write(html);
    tokenizer.end();
    const title = this.#title.replace(/\s+/g, " ").trim();
    return { ...this.#text.result(), mediaType: "text/plain", ...(title !== "" && { title }) };
  }

  #open(name: string, attributes: Readonly<Attributes>): void {
    if (this.#skips) {
      if (this.#skips.name === name) this.#skips.depth++;
      return;
    }
    if (skipped.has(name) || isHidden(name, attributes)) {
      this.#skips = { name, depth: 1 };
      return;
    }
    switch (name) {
      case "title":
        this.#isTitle = true;
        break;
      case "base":
        this.#base = absolute(attributes.href, this.#base) ?? this.#base;
        break;
      case "br":
        this.#break(1);
        break;
      case "hr":
        this.#break(2);
        break;
      case "img":
        if (attributes.alt?.trim()) this.#add(` [image: ${attributes.alt.trim()}] `);
        break;
      case "a":
        this.#closeLink();
        this.#openLink(attributes.href);
        break;
      case "td":
      case "th":
        if (this.#breaks === 0 && !this.#isEmpty) this.#add(" | ");
        break;
      default:
        this.#break(lineBreaks[name] ?? 0);
    }
    if (name === "pre") this.#pre++;
    if (name === "li") this.#write("- ");
    else if (/^h[1-6]$/.test(name)) this.#write(`${"#".repeat(Number(name[1]))} `);
  }

  #close(name: string): void {
    if (this.#skips) {
      if (this.#skips.name === name && --this.#skips.depth === 0) this.#skips = undefined;
      return;
    }
    if (name === "title") this.#isTitle = false;
    else if (name === "pre") this.#pre = Math.max(0, this.#pre - 1);
    else if (name === "a") this.#closeLink();
    this.#break(lineBreaks[name] ?? 0);
  }

  #closeLink(): void {
    if (this.#link?.hasText) this.#text.add(`](${this.#link.url})`);
    this.#link = undefined;
  }

  #openLink(href: string | undefined): void {
    const url = absolute(href, this.#base);
    if (url !== undefined && url.length <= maxLink) this.#link = { url, hasText: false };
  }

  #break(lines: 0 | 1 | 2): void {
    if (lines > this.#breaks) this.#breaks = lines;
  }

  #add(text: string): void {
    if (this.#skips) return;
    if (this.#isTitle) {
      if (this.#title.length < maxTitle) this.#title += text.slice(0, maxTitle - this.#title.length);
      return;
    }
    if (this.#pre > 0) return this.#write(text);
    const words = text.replace(/\s+/g, " ");
    if (words === " ") {
      this.#space = true;
      return;
    }
    if (words.startsWith(" ")) this.#space = true;
    this.#write(words.trim());
    this.#space = words.endsWith(" ");
  }

  /** Writes text after the breaks that are due. */
  #write(text: string): void {
    if (text === "") return;
    if (!this.#isEmpty) this.#text.add(this.#breaks > 0 ? "\n".repeat(this.#breaks) : this.#space ? " " : "");
    this.#isEmpty = false;
    this.#breaks = 0;
    this.#space = false;
    if (this.#link && !this.#link.hasText) {
      this.#link.hasText = true;
      this.#text.add("[");
    }
    this.#text.add(text);
  }
}

/** Elements without content, which are never closed. */
const empty = new Set([
  "input",
  "img",
  "br",
  "hr",
  "meta",
  "link",
  "base",
  "col",
  "embed",
  "source",
  "track",
  "wbr",
  "area",
]);

/** No element and no attribute that is read has a longer name. */
function nameIn(html: string, start: number, end: number): string {
  return html.slice(start, Math.min(end, start + 20)).toLowerCase();
}

function isHidden(name: string, { hidden, style }: Readonly<Attributes>): boolean {
  if (empty.has(name)) return false;
  return (
    hidden !== undefined || (style !== undefined && /(?:display|visibility)\s{0,9}:\s{0,9}(?:none|hidden)/i.test(style))
  );
}

/** An address of the web; undefined for others. */
function absolute(href: string | undefined, base: string): string | undefined {
  if (href === undefined || !URL.canParse(href, base)) return undefined;
  const url = new URL(href, base);
  if (url.protocol !== "http:" && url.protocol !== "https:") return undefined;
  url.hash = "";
  return url.href;
}
