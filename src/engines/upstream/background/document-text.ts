import { Buffer } from "node:buffer";
import { inflateRawSync } from "node:zlib";
import type { DocumentText } from "./background.ts";

const maxPages = 500;
/** The longest text, in characters. */
const maxText = 2_000_000;
/** The most bytes that a packed file may unpack to. */
const maxUnpacked = 128 * 1024 * 1024;

/**
 * Reads the text of a PDF, a Word, PowerPoint or Excel file (since 2007), or of a text in UTF-8, by its bytes. Throws an Error with a reason.
 * Does not read text in images.
 */
export async function documentText(bytes: Uint8Array): Promise<DocumentText> {
  if (bytes.length === 0) throw new Error("it is empty");
  const head = Buffer.from(bytes.subarray(0, 1024)).toString("latin1");
  if (head.includes("%PDF-")) return pdfText(bytes);
  if (head.startsWith("PK")) return packedText(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  if (head.startsWith("\xD0\xCF\x11\xE0"))
    throw new Error("it is an Office file from before 2007; save it as .docx, .xlsx or .pptx");
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    text = "\0";
  }
  if (text.includes("\0")) throw new Error("it is not a PDF, an Office file, or a text in UTF-8");
  return new BoundedText().add(text).result();
}

/** A text that is bounded while it grows. */
export class BoundedText {
  readonly #parts: string[] = [];
  #length = 0;
  #isCut = false;

  /** Whether something was left out, and nothing further is kept. */
  get isCut(): boolean {
    return this.#isCut;
  }

  add(text: string): this {
    const kept = text.slice(0, maxText - this.#length);
    if (kept.length < text.length) this.#isCut = true;
    if (kept !== "") this.#parts.push(kept);
    this.#length += kept.length;
    return this;
  }

  /** The rest of the document is left out. */
  cut(): void {
    this.#isCut = true;
  }

  /** Throws an Error with a reason for a text without words. */
  result(): DocumentText {
    const text = this.#parts.join("").trim();
    if (text === "") throw new Error("it has no text");
    return { text, isCut: this.#isCut };
  }
}

/** What `streamTextContent` of pdf.js sends; only texts have `str`. */
interface PdfText {
  readonly items: readonly { readonly str?: string; readonly hasEOL?: boolean }[];
}

async function pdfText(bytes: Uint8Array): Promise<DocumentText> {
  const { getDocumentProxy } = await import("unpdf");
  // A copy: pdf.js takes the memory of what it gets.
  const pdf = await getDocumentProxy(new Uint8Array(bytes), { isEvalSupported: false, verbosity: 0 });
  const { numPages } = pdf;
  const text = new BoundedText();
  let hasWords = false;
  for (let number = 1; number <= numPages; number++) {
    if (number > maxPages) text.cut();
    if (text.isCut) break;
    if (number > 1) text.add("\n\n");
    if (numPages > 1) text.add(`[Page ${number}]\n`);
    // In parts, as the page is read: one of a few bytes may have text without end.
    const parts = ((await pdf.getPage(number)).streamTextContent() as ReadableStream<PdfText>).getReader();
    for (let part = await parts.read(); !part.done && !text.isCut; part = await parts.read())
      for (const { str = "", hasEOL } of part.value.items) {
        hasWords ||= str.trim() !== "";
        text.add(hasEOL === true ? `${str}\n` : str);
      }
    // pdf.js wants an Error for a reason.
    if (text.isCut) await parts.cancel(new Error("the text is long enough"));
  }
  await pdf.destroy();
  if (!hasWords) throw new Error("it has no text; its pages may be images");
  return text.result();
}

async function packedText(bytes: Buffer): Promise<DocumentText> {
  const archive = new Archive(bytes);
  const text = new BoundedText();
  if (archive.has("word/document.xml")) {
    const mammoth = await import("mammoth");
    // It reads through our reader, which counts what is unpacked: an archive may have two directories, and they may differ.
    const file = {
      exists: (name: string) => archive.has(name),
      read: async (name: string, encoding?: BufferEncoding) =>
        encoding === undefined ? new Uint8Array(archive.read(name)) : archive.read(name).toString(encoding),
    };
    return text.add((await mammoth.default.extractRawText({ file } as unknown as { buffer: Buffer })).value).result();
  }
  if (archive.has("ppt/presentation.xml"))
    addNumbered(text, archive, /^ppt\/slides\/slide(\d+)\.xml$/, "Slide", (xml) => addParagraphs(text, xml));
  else if (archive.has("xl/workbook.xml")) {
    const shared: string[] = [];
    if (archive.has("xl/sharedStrings.xml"))
      for (const [, xml] of elements(archive.read("xl/sharedStrings.xml").toString("utf8"), "si"))
        shared.push(texts(xml));
    addNumbered(text, archive, /^xl\/worksheets\/sheet(\d+)\.xml$/, "Sheet", (xml) => addRows(text, xml, shared));
  } else throw new Error("it is a packed file, but not of Word, PowerPoint or Excel");
  return text.result();
}

/** Adds the texts of files whose names match, in the order of their numbers, each under a heading. */
function addNumbered(
  text: BoundedText,
  archive: Archive,
  pattern: RegExp,
  heading: string,
  add: (xml: string) => void,
): void {
  const found = archive.names
    .flatMap((name): readonly (readonly [number, string])[] => {
      const [, number] = pattern.exec(name) ?? [];
      return number === undefined ? [] : [[Number(number), name]];
    })
    .toSorted(([one], [other]) => one - other);
  for (const [at, [number, name]] of found.entries()) {
    if (text.isCut) return;
    text.add(`${at > 0 ? "\n\n" : ""}[${heading} ${number}]\n`);
    add(archive.read(name).toString("utf8"));
  }
}

/**
 * Reads a ZIP archive by its central directory (APPNOTE.TXT 6.3.10, section 4.3). Archives in the format ZIP64 are refused. Throws an Error
 * with a reason, also when all that was unpacked is too much together.
 */
class Archive {
  readonly #bytes: Buffer;
  /** The place of each file's entry in the directory. */
  readonly #entries = new Map<string, number>();
  #left = maxUnpacked;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    const end = bytes.lastIndexOf("PK\x05\x06", undefined, "latin1");
    if (end === -1 || end + 22 > bytes.length) throw new Error("it is damaged: its archive has no end");
    const [count, directory] = [bytes.readUInt16LE(end + 10), bytes.readUInt32LE(end + 16)];
    if (count === 0xffff || directory === 0xffffffff) throw new Error(zip64);
    let at = directory;
    for (let left = count; left > 0; left--) {
      if (at + 46 > bytes.length || bytes.readUInt32LE(at) !== 0x02014b50) throw new Error("it is damaged");
      const lengths = [28, 30, 32].map((offset) => bytes.readUInt16LE(at + offset));
      const [nameLength = 0, extraLength = 0, commentLength = 0] = lengths;
      this.#entries.set(bytes.toString("utf8", at + 46, at + 46 + nameLength), at);
      at += 46 + nameLength + extraLength + commentLength;
    }
  }

  get names(): readonly string[] {
    return [...this.#entries.keys()];
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /** The content of a file. Counts what it unpacks to. */
  read(name: string): Buffer {
    const bytes = this.#bytes;
    const at = this.#entries.get(name);
    if (at === undefined) throw new Error(`it is damaged: ${name} is missing in it`);
    const [method, size, local] = [
      bytes.readUInt16LE(at + 10),
      bytes.readUInt32LE(at + 20),
      bytes.readUInt32LE(at + 42),
    ];
    if (size === 0xffffffff || local === 0xffffffff) throw new Error(zip64);
    if (local + 30 > bytes.length) throw new Error("it is damaged");
    const start = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
    const packed = bytes.subarray(start, start + size);
    if (method !== 0 && method !== 8) throw new Error("it is packed in an unusual way, or encrypted");
    const content = method === 0 ? packed : this.#inflated(packed);
    this.#left -= content.length;
    if (this.#left <= 0) throw new Error(unpacksToTooMuch);
    return content;
  }

  #inflated(packed: Buffer): Buffer {
    try {
      return inflateRawSync(packed, { maxOutputLength: this.#left });
    } catch (cause) {
      const isLarge = cause instanceof RangeError || (cause as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE";
      throw new Error(isLarge ? unpacksToTooMuch : "it is damaged", { cause });
    }
  }
}

const unpacksToTooMuch = `it unpacks to more than ${maxUnpacked / 1024 / 1024} MiB`;
const zip64 = "its archive is in the format ZIP64, which is not read; save it again without";

/** The elements of this name, with their attributes and contents; none of them contains another one. */
function* elements(xml: string, name: string): Generator<readonly [attributes: string, content: string]> {
  const open = `<${name}`;
  const close = `</${name}>`;
  for (let at = xml.indexOf(open); at !== -1; at = xml.indexOf(open, at)) {
    const start = xml.indexOf(">", at);
    if (start === -1) return;
    const next = xml[at + open.length] ?? "";
    const attributes = xml.slice(at + open.length, start);
    at = start + 1;
    if (!/[\s>/]/.test(next)) continue;
    if (attributes.endsWith("/")) {
      yield [attributes, ""];
      continue;
    }
    const end = xml.indexOf(close, at);
    if (end === -1) return;
    yield [attributes, xml.slice(at, end)];
    at = end + close.length;
  }
}

function addParagraphs(text: BoundedText, xml: string): void {
  let isFirst = true;
  for (const [, content] of elements(xml, "a:p")) {
    let line = "";
    for (const [, run] of elements(content, "a:t")) line += plain(run);
    if (line === "") continue;
    text.add(isFirst ? line : `\n${line}`);
    isFirst = false;
    if (text.isCut) return;
  }
}

function texts(xml: string): string {
  let joined = "";
  for (const [, text] of elements(xml, "t")) joined += plain(text);
  return joined;
}

/** Adds the rows of a sheet, with tabs between cells. Cells may repeat a long shared text. */
function addRows(text: BoundedText, xml: string, shared: readonly string[]): void {
  let isFirstRow = true;
  for (const [, row] of elements(xml, "row")) {
    if (!isFirstRow) text.add("\n");
    isFirstRow = false;
    let isFirstCell = true;
    for (const [attributes, cell] of elements(row, "c")) {
      if (!isFirstCell) text.add("\t");
      isFirstCell = false;
      const [[, value] = []] = elements(cell, "v");
      if (/\bt="s"/.test(attributes)) text.add(shared[Number(value)] ?? "");
      else text.add(value === undefined ? texts(cell) : plain(value));
      if (text.isCut) return;
    }
  }
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function plain(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([\da-f]+)|(amp|lt|gt|quot|apos));/gi, (_, decimal, hex, name: string) => {
    const code = decimal === undefined ? Number.parseInt(String(hex), 16) : Number(decimal);
    if (name) return entities[name.toLowerCase()] ?? "";
    return code <= 0x10ffff ? String.fromCodePoint(code) : "";
  });
}
