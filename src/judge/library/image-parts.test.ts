import fc from "fast-check";
import { expect, test } from "vitest";
import type { Message } from "../../wire/core/message.ts";
import { imagePart, inlineImages, readDataUrl } from "./image-parts.ts";

test("bytes survive as a data URL, whatever they are and however many", () => {
  const mediaType = "image/png";
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      const part = imagePart(bytes, { mediaType });
      expect(part.type === "image" && readDataUrl(part.url)).toEqual({ bytes, mediaType });
    }),
  );
  const large = new Uint8Array(200_001).fill(7);
  const part = imagePart(large, { mediaType });
  expect(part.type === "image" && readDataUrl(part.url)?.bytes.length).toBe(large.length);
});

test("a URL is kept to the letter", () => {
  expect(imagePart("HTTPS://Example.com/a b.png?x=1", { detail: "low" })).toEqual({
    type: "image",
    url: "HTTPS://Example.com/a b.png?x=1",
    detail: "low",
  });
});

test("the first bytes tell the type; where they do not, it has to be said", () => {
  const webp = new TextEncoder().encode("RIFF....WEBPVP8 ");
  expect(imagePart(webp)).toMatchObject({ url: expect.stringMatching(/^data:image\/webp;/) });
  expect(() => imagePart(new TextEncoder().encode("<svg/>"))).toThrow(TypeError);
});

test.each(["https://example.com/", "data:image/png;base64,%%%", "data:image/png"])("%s holds no bytes", (url) => {
  expect(readDataUrl(url)).toBeNull();
});

test("images behind URLs are put in, each fetched once; data URLs and all else stay", async () => {
  const asked: string[] = [];
  const download = async (url: string): Promise<{ bytes: Uint8Array; mediaType: string }> => {
    asked.push(url);
    return { bytes: Uint8Array.of(1), mediaType: "image/gif" };
  };
  const image = imagePart("https://example.com/a.gif");
  const inline = imagePart(Uint8Array.of(9), { mediaType: "image/png" });
  const messages: Message[] = [
    { role: "system", content: "Look." },
    { role: "user", content: [image, { type: "text", text: "?" }, inline, image] },
    { role: "assistant", content: null },
  ];
  const result = await inlineImages(messages, download);
  expect(asked).toEqual(["https://example.com/a.gif"]);
  expect(result[1]?.content).toEqual([
    { type: "image", url: "data:image/gif;base64,AQ==" },
    { type: "text", text: "?" },
    inline,
    { type: "image", url: "data:image/gif;base64,AQ==" },
  ]);
  expect([result[0], result[2]]).toEqual([messages[0], messages[2]]);
});
