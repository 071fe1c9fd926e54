import { MultipartParser } from "@remix-run/multipart-parser";
import { expect, test } from "vitest";
import { runSync } from "../../wire/core/steps.ts";
import { readParts } from "./read-form.ts";

const form =
  '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--b\r\n' +
  'Content-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\r\n--b--\r\nan epilogue';

// Where a step ended with the last boundary, the line end after it was refused: "Unexpected data after end of stream". Found by npm run fuzz.
test("a form is read alike in steps of every size, and what follows its last boundary is ignored", () => {
  const bytes = new TextEncoder().encode(form);
  for (let size = 1; size <= bytes.length; size++) {
    const members = new Map<string, unknown>();
    runSync(readParts(bytes, new MultipartParser("b"), members, size));
    expect(Object.fromEntries(members)).toEqual({ model: "m", file: { name: "a.wav", data: btoa("RIFF") } });
  }
});
