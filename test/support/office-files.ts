import { crc32, deflateRawSync } from "node:zlib";

/** A PDF with one page for each text. */
export function pdf(...pages: readonly string[]): Buffer {
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    `<< /Type /Pages /Count ${pages.length} /Kids [${pages.map((_, at) => `${4 + at * 2} 0 R`).join(" ")}] >>`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ...pages.flatMap((text, at) => {
      const content = `BT /F1 12 Tf 72 720 Td (${text.replaceAll(/[()\\]/g, "\\$&")}) Tj ET`;
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${5 + at * 2} 0 R >>`,
        `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
      ];
    }),
  ];
  let text = "%PDF-1.4\n";
  const offsets = objects.map((object, at) => {
    const offset = text.length;
    text += `${at + 1} 0 obj\n${object}\nendobj\n`;
    return offset;
  });
  const start = text.length;
  const rows = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
  const size = objects.length + 1;
  text += `xref\n0 ${size}\n0000000000 65535 f \n${rows}trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`;
  return Buffer.from(text, "latin1");
}

/** A ZIP archive. */
export function zip(files: Readonly<Record<string, string | Buffer>>): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, content] of Object.entries(files)) {
    const bytes = Buffer.from(content);
    const packed = deflateRawSync(bytes);
    const path = Buffer.from(name);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(8, 4);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(bytes.length, 18);
    common.writeUInt16LE(path.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), common, path, packed]);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x00"), common, place, path]));
    parts.push(local);
    offset += local.length;
  }
  const list = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  const count = directory.length;
  end.writeUInt16LE(count, 4);
  end.writeUInt16LE(count, 6);
  end.writeUInt32LE(list.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, list, Buffer.from("PK\x05\x06"), end]);
}

const types = (body: string): string =>
  `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>${body}</Types>`;
const relations = (target: string): string =>
  `<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="${target}"/></Relationships>`;

export function docx(...paragraphs: readonly string[]): Buffer {
  const body = paragraphs.map((text) => `<w:p><w:r><w:t>${text}</w:t></w:r></w:p>`).join("");
  const main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml";
  return zip({
    "[Content_Types].xml": types(`<Override PartName="/word/document.xml" ContentType="${main}"/>`),
    "_rels/.rels": relations("word/document.xml"),
    "word/document.xml": `<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>${body}</w:body></w:document>`,
  });
}

export function pptx(...slides: readonly string[]): Buffer {
  const files = slides.map((text, at) => [
    `ppt/slides/slide${at + 1}.xml`,
    `<p:sld><a:p><a:r><a:t>${text}</a:t></a:r></a:p></p:sld>`,
  ]);
  return zip({ "ppt/presentation.xml": "<p:presentation/>", ...(Object.fromEntries(files) as Record<string, string>) });
}

/** One sheet; texts are shared strings. */
export function xlsx(rows: readonly (readonly (string | number)[])[]): Buffer {
  const texts = rows.flat().filter((cell) => typeof cell === "string");
  const cells = (row: readonly (string | number)[]): string =>
    row
      .map((cell) =>
        typeof cell === "string" ? `<c t="s"><v>${texts.indexOf(cell)}</v></c>` : `<c><v>${cell}</v></c>`,
      )
      .join("");
  return zip({
    "xl/workbook.xml": "<workbook/>",
    "xl/sharedStrings.xml": `<sst>${texts.map((text) => `<si><t xml:space="preserve">${text}</t></si>`).join("")}</sst>`,
    "xl/worksheets/sheet1.xml": `<worksheet><sheetData>${rows.map((row, at) => `<row r="${at + 1}">${cells(row)}</row>`).join("")}</sheetData></worksheet>`,
  });
}
