import type { AttachedFile } from "./turn.ts";

/** A file that was chosen, as it is attached to a question. */
export type Attachment = { readonly image: string } | { readonly file: AttachedFile };

/** What is known of the model that will be asked. */
export interface Reader {
  readonly model: string;
  readonly takesImages: boolean;
  /** It reads PDF and Office files, itself or because the server reads their text for it. */
  readonly takesDocuments: boolean;
}

/** Of a file, in bytes: the server takes requests of up to 32 MiB, in which base64 takes a third more. */
const maxSize = 20 * 1024 * 1024;
/** Of a text, in characters: as much as the server reads of a document. */
const maxText = 2_000_000;

const office: Readonly<Record<string, string>> = {
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
};

/**
 * Reads a file by its bytes: an image or a document as a data URL, everything else as text in UTF-8, which every model reads. Throws an Error
 * with the reason, in words that follow "was not attached:", if the model cannot read it.
 */
export async function attachmentOf(file: File, { model, takesImages, takesDocuments }: Reader): Promise<Attachment> {
  const { name } = file;
  if (file.size === 0) throw new Error("it is empty");
  if (file.size > maxSize) throw new Error("it is larger than 20 MB");
  if (file.type.startsWith("image/") && file.type !== "image/svg+xml") {
    if (!takesImages) throw new Error(`${model} takes no images`);
    return { image: await dataUrl(file, file.type) };
  }
  const bytes = new Uint8Array(await file.arrayBuffer());
  const type = documentType(name, bytes);
  if (type !== undefined) {
    if (!takesDocuments) throw new Error(`${model} reads texts, but no PDF or Office files: paste their text`);
    return { file: { name, data: await dataUrl(file, type) } };
  }
  const text = textOf(bytes);
  if (text.length > maxText) throw new Error("its text is longer than 2,000,000 characters");
  return { file: { name, text } };
}

/** The media type of a document that is no text. Throws if it is one that nothing reads. */
function documentType(name: string, bytes: Uint8Array): string | undefined {
  const head = String.fromCharCode(...bytes.subarray(0, 1024));
  if (head.includes("%PDF-")) return "application/pdf";
  if (head.startsWith("\xD0\xCF\x11\xE0"))
    throw new Error("it is an Office file from before 2007; save it as .docx, .xlsx or .pptx");
  if (!head.startsWith("PK\x03\x04")) return undefined;
  const type = office[/[^.]*$/.exec(name.toLowerCase())?.[0] ?? ""];
  if (type === undefined) throw new Error("it is a packed file; unpack it, and attach what is inside");
  return type;
}

function textOf(bytes: Uint8Array): string {
  let text: string;
  try {
    // As Windows' editor may save it.
    const encoding = bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : "utf-8";
    text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    text = "\0";
  }
  if (text.includes("\0")) throw new Error("it is not an image, a PDF, an Office file, or a text in UTF-8");
  return text;
}

function dataUrl(file: File, type: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result)));
    reader.addEventListener("error", () => reject(new Error("the browser cannot read it")));
    reader.readAsDataURL(new Blob([file], { type }));
  });
}
