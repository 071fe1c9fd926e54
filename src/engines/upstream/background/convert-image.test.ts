import { expect, test } from "vitest";
import { convertImage, type OpenSharp } from "./convert-image.ts";

const bytes = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0));
const webp = bytes("RIFF\x1a\0\0\0WEBPVP8L");
/** The start of a PNG of 3000 × 200 pixels. */
const png = bytes("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x0b\xb8\0\0\0\xc8");

/** In place of sharp, which is optional: notes what it is asked for. */
function fakeSharp(width: number, height: number) {
  const calls: unknown[] = [];
  const image = {
    metadata: () => Promise.resolve({ width, height }),
    rotate: () => image,
    resize: (options: unknown) => (calls.push(options), image),
    flatten: () => (calls.push("flatten"), image),
    png: () => (calls.push("png"), image),
    jpeg: () => (calls.push("jpeg"), image),
    toBuffer: () => Promise.resolve(bytes("new")),
  };
  return { calls, open: () => Promise.resolve((() => image) as OpenSharp) };
}

const inside = (side: number) => ({ width: side, height: side, fit: "inside", withoutEnlargement: true });

test.each([
  [webp, { types: ["image/png", "image/jpeg"] }, "data:image/png;base64,bmV3", [inside(300), "png"]],
  [webp, { types: ["image/jpeg"] }, "data:image/jpeg;base64,bmV3", [inside(300), "flatten", "jpeg"]],
  [png, { maxSide: 1000 }, "data:image/png;base64,bmV3", [inside(1000), "png"]],
])("an image that does not fit is converted", async (image, limits, url, expected) => {
  const { calls, open } = fakeSharp(image === png ? 3000 : 300, 200);
  expect(await convertImage(image, limits, true, open)).toEqual({ url });
  expect(calls).toEqual(expected);
});

test("an image that fits stays as it is, and needs no package", async () => {
  const absent = (): Promise<OpenSharp> => Promise.reject(new Error("absent"));
  expect(await convertImage(png, { types: ["image/png"], maxSide: 3000 }, true, absent)).toEqual({ url: null });
  const downloaded = await convertImage(webp, {}, false, absent);
  expect(downloaded.url).toMatch(/^data:image\/webp;base64,/);
  await expect(convertImage(png, { maxSide: 2999 }, true, absent)).rejects.toThrow("absent");
  await expect(convertImage(bytes("<svg>"), {}, true, absent)).rejects.toThrow("it is not an image of a known type");
});
