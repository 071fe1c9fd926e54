import { describe, expect, test } from "vitest";
import { longPdf, repeatedSharedText, zip64Docx } from "../../../../test/support/hostile-files.ts";
import { docx, pdf, pptx, xlsx, zip } from "../../../../test/support/office-files.ts";
import { documentText } from "./document-text.ts";

test.each([
  ["a PDF of one page", pdf("Hello (world)"), "Hello (world)"],
  ["a PDF of pages", pdf("One", "Two"), "[Page 1]\nOne\n\n[Page 2]\nTwo"],
  ["a Word file", docx("Hello", "Tom &amp; Jerry"), "Hello\n\nTom & Jerry"],
  ["a PowerPoint file", pptx("First", "Tom &#38; Jerry"), "[Slide 1]\nFirst\n\n[Slide 2]\nTom & Jerry"],
  [
    "an Excel file",
    xlsx([
      ["Name", "Age"],
      ["Ada", 36],
    ]),
    "[Sheet 1]\nName\tAge\nAda\t36",
  ],
  ["a text", Buffer.from("# Titel\nÜber"), "# Titel\nÜber"],
])("the text of %s", async (_, bytes, text) => {
  expect(await documentText(bytes)).toEqual({ text, isCut: false });
});

test("a long text is cut", async () => {
  const { text, isCut } = await documentText(Buffer.alloc(3_000_000, "a"));
  expect([text.length, isCut]).toEqual([2_000_000, true]);
});

// The texts of all cells were joined before their length was looked at: 1.5 kB became one string of 2 GB, for which V8 ends the process. Our
// long texts were long in the file.
test("cells that repeat a long shared text fill the text, and no more", async () => {
  const sheet = repeatedSharedText();
  expect(sheet.length).toBeLessThan(2000);
  const { text, isCut } = await documentText(sheet);
  expect([text.length, isCut]).toEqual([2_000_000, true]);
});

// We counted what the classic directory names, and the library unpacked what that of ZIP64 names. No test had an archive with two.
test("an archive with two directories is read by the one that is counted", async () => {
  expect(await documentText(zip64Docx(200))).toEqual({ text: "Hello", isCut: false });
});

test("a long PDF is cut while it is read, and so are slides and sheets", async () => {
  const long = "word ".repeat(300_000);
  for (const file of [longPdf(30_000), pptx(long, long, long), xlsx([[long], [long]])]) {
    const { text, isCut } = await documentText(file);
    expect([text.length, isCut]).toEqual([2_000_000, true]);
  }
});

describe("refuses", () => {
  test.each([
    ["nothing", Buffer.alloc(0), "it is empty"],
    ["a program", Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0]), "it is not a PDF, an Office file, or a text in UTF-8"],
    ["an old Word file", Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 0xa1]), "it is an Office file from before 2007"],
    ["a PDF without text", pdf(""), "it has no text; its pages may be images"],
    ["another archive", zip({ "a.xml": "<a/>" }), "it is a packed file, but not of Word, PowerPoint or Excel"],
    ["half an archive", docx("Hello").subarray(0, 300), "it is damaged"],
    ["half a PDF", pdf("Hello").subarray(0, 40), "Invalid PDF structure"],
    ["an empty Word file", docx(), "it has no text"],
  ])("%s", async (_, bytes, reason) => {
    await expect(documentText(bytes)).rejects.toThrow(reason);
  });

  // A file of 200 KB would have become 200 MiB, and more with each further entry.
  test("an archive that unpacks to more than 128 MiB", async () => {
    const bomb = zip({ "word/document.xml": Buffer.alloc(140 * 1024 * 1024, 32) });
    expect(bomb.length).toBeLessThan(300_000);
    await expect(documentText(bomb)).rejects.toThrow("it unpacks to more than 128 MiB");
  });
});
