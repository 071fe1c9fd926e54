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
  return bounded([text]);
}

/** An item of a page; only texts have `str`. */
interface PdfText {
  readonly str?: string;
  readonly hasEOL?: boolean;
}

async function pdfText(bytes: Uint8Array): Promise<DocumentText> {
  const { getDocumentProxy } = await import("unpdf");
  // A copy: pdf.js takes the memory of what it gets.
  const pdf = await getDocumentProxy(new Uint8Array(bytes), { isEvalSupported: false, verbosity: 0 });
  const pages: string[] = [];
  let length = 0;
  for (let number = 1; number <= Math.min(pdf.numPages, maxPages) && length <= maxText; number++) {
    const { items } = await (await pdf.getPage(number)).getTextContent();
    const text = (items as readonly PdfText[]).map(({ str = "", hasEOL }) => (hasEOL ? `${str}\n` : str)).join("");
    length += text.length;
    pages.push(text);
  }
  const { numPages } = pdf;
  await pdf.destroy();
  if (pages.every((page) => page.trim() === "")) throw new Error("it has no text; its pages may be images");
  const result = bounded(pages.map((page, at) => (numPages > 1 ? `[Page ${at + 1}]\n${page}` : page)));
  return { ...result, isCut: result.isCut || pages.length < numPages };
}

async function packedText(bytes: Buffer): Promise<DocumentText> {
  const files = unpacked(bytes);
  if (files.has("word/document.xml")) {
    // What it unpacks to is known to be bounded.
    const mammoth = await import("mammoth");
    return bounded([(await mammoth.default.extractRawText({ buffer: bytes })).value]);
  }
  if (files.has("ppt/presentation.xml"))
    return bounded(
      numbered(files, /^ppt\/slides\/slide(\d+)\.xml$/).map(([number, xml]) => `[Slide ${number}]\n${paragraphs(xml)}`),
    );
  if (files.has("xl/workbook.xml")) {
    const shared = elements(files.get("xl/sharedStrings.xml") ?? "", "si").map(([, xml]) => texts(xml));
    return bounded(
      numbered(files, /^xl\/worksheets\/sheet(\d+)\.xml$/).map(
        ([number, xml]) => `[Sheet ${number}]\n${rows(xml, shared).join("\n")}`,
      ),
    );
  }
  throw new Error("it is a packed file, but not of Word, PowerPoint or Excel");
}

function bounded(parts: readonly string[]): DocumentText {
  const text = parts.join("\n\n").trim();
  if (text === "") throw new Error("it has no text");
  return text.length > maxText ? { text: text.slice(0, maxText), isCut: true } : { text, isCut: false };
}

/** The files of a ZIP archive, the large images left out. Throws if they are too large together, before anything else reads the archive. */
function unpacked(bytes: Buffer): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  const end = bytes.lastIndexOf("PK\x05\x06", undefined, "latin1");
  if (end === -1 || end + 22 > bytes.length) throw new Error("it is damaged: its archive has no end");
  let left = maxUnpacked;
  let at = bytes.readUInt32LE(end + 16);
  for (let count = bytes.readUInt16LE(end + 10); count > 0; count--) {
    if (at + 46 > bytes.length || bytes.readUInt32LE(at) !== 0x02014b50) throw new Error("it is damaged");
    const [method, size] = [bytes.readUInt16LE(at + 10), bytes.readUInt32LE(at + 20)];
    const lengths = [28, 30, 32].map((offset) => bytes.readUInt16LE(at + offset));
    const [nameLength = 0, extraLength = 0, commentLength = 0] = lengths;
    const name = bytes.toString("utf8", at + 46, at + 46 + nameLength);
    const local = bytes.readUInt32LE(at + 42);
    if (local + 30 > bytes.length) throw new Error("it is damaged");
    const start = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
    const packed = bytes.subarray(start, start + size);
    if (method !== 0 && method !== 8) throw new Error("it is packed in an unusual way, or encrypted");
    let content: Buffer;
    try {
      content = method === 0 ? packed : inflateRawSync(packed, { maxOutputLength: left });
    } catch (error) {
      const isLarge = error instanceof RangeError || (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE";
      throw new Error(isLarge ? `it unpacks to more than ${maxUnpacked / 1024 / 1024} MiB` : "it is damaged", {
        cause: error,
      });
    }
    left -= content.length;
    if (left <= 0) throw new Error(`it unpacks to more than ${maxUnpacked / 1024 / 1024} MiB`);
    if (name.endsWith(".xml")) files.set(name, content.toString("utf8"));
    at += 46 + nameLength + extraLength + commentLength;
  }
  return files;
}

/** Files whose names match, in the order of their numbers. */
function numbered(files: ReadonlyMap<string, string>, pattern: RegExp): readonly (readonly [number, string])[] {
  return [...files]
    .flatMap(([name, xml]): readonly (readonly [number, string])[] => {
      const [, number] = pattern.exec(name) ?? [];
      return number === undefined ? [] : [[Number(number), xml]];
    })
    .toSorted(([one], [other]) => one - other);
}

/** The elements of this name, with their attributes and contents; none of them contains another one. */
function elements(xml: string, name: string): readonly (readonly [attributes: string, content: string])[] {
  const found: [string, string][] = [];
  const open = `<${name}`;
  const close = `</${name}>`;
  for (let at = xml.indexOf(open); at !== -1; at = xml.indexOf(open, at)) {
    const start = xml.indexOf(">", at);
    if (start === -1) break;
    const next = xml[at + open.length] ?? "";
    const attributes = xml.slice(at + open.length, start);
    at = start + 1;
    if (!/[\s>/]/.test(next)) continue;
    if (attributes.endsWith("/")) {
      found.push([attributes, ""]);
      continue;
    }
    const end = xml.indexOf(close, at);
    if (end === -1) break;
    found.push([attributes, xml.slice(at, end)]);
    at = end + close.length;
  }
  return found;
}

function paragraphs(xml: string): string {
  return elements(xml, "a:p")
    .map(([, content]) =>
      elements(content, "a:t")
        .map(([, text]) => plain(text))
        .join(""),
    )
    .filter((line) => line !== "")
    .join("\n");
}

function texts(xml: string): string {
  return elements(xml, "t")
    .map(([, text]) => plain(text))
    .join("");
}

/** The rows of a sheet, with tabs between cells. */
function rows(xml: string, shared: readonly string[]): readonly string[] {
  return elements(xml, "row").map(([, row]) =>
    elements(row, "c")
      .map(([attributes, cell]) => {
        const [, value] = elements(cell, "v")[0] ?? [];
        if (/\bt="s"/.test(attributes)) return shared[Number(value)] ?? "";
        return value === undefined ? texts(cell) : plain(value);
      })
      .join("\t"),
  );
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function plain(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([\da-f]+)|(amp|lt|gt|quot|apos));/gi, (_, decimal, hex, name: string) => {
    const code = decimal === undefined ? Number.parseInt(String(hex), 16) : Number(decimal);
    if (name) return entities[name.toLowerCase()] ?? "";
    return code <= 0x10ffff ? String.fromCodePoint(code) : "";
  });
}
