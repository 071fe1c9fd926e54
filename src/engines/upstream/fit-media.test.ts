import { expect, test } from "vitest";
import { unfitParts } from "../../wire/apis/adapt/fit-media.ts";
import type { ServerProfile } from "../../wire/apis/adapt/server-profile.ts";
import type { ContentPart } from "../../wire/core/message.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { Background } from "./background/background.ts";
import { fitMedia } from "./fit-media.ts";

const request = (content: readonly ContentPart[]): GenerationRequest => ({
  id: "r",
  model: "m",
  prompt: { kind: "chat", messages: [{ role: "user", content }], template: {} },
  sampling: {},
  limits: {},
  wantsUsage: false,
  stream: false,
  extra: {},
});

/** Reads texts in this process, and notes what is downloaded. */
function fakeBackground(downloads: string[] = []): Background {
  const unused = () => Promise.reject(new Error("unused"));
  return {
    judge: unused,
    pageText: unused,
    documentText: (data) =>
      typeof data === "string" && data.includes("broken")
        ? Promise.reject(new Error("it is damaged"))
        : Promise.resolve({ text: typeof data === "string" ? data : "downloaded", isCut: true }),
    convertImage: (data) => Promise.resolve({ url: typeof data === "string" ? null : "data:image/png;base64,AA==" }),
    download: (url) => {
      downloads.push(url);
      return Promise.resolve(Uint8Array.of(1));
    },
    close: () => Promise.resolve(),
  };
}

async function fit(content: readonly ContentPart[], profile: ServerProfile) {
  const asked = request(content);
  const noted: string[] = [];
  const downloads: string[] = [];
  const note = (name: string, place?: string): void => void noted.push(`${name} ${place}`);
  const fitted = await fitMedia(asked, unfitParts(asked, profile), profile, fakeBackground(downloads), note);
  const { prompt } = fitted;
  return { content: prompt.kind === "chat" ? prompt.messages[0]?.content : undefined, noted, downloads };
}

test("files and images by URL are downloaded, and each change is noted at its place", async () => {
  const image: ContentPart = { type: "image", url: "https://example.com/a.png", detail: "low" };
  const file: ContentPart = { type: "file", name: "a.pdf", url: "https://example.com/a.pdf", cacheMinutes: 5 };
  const { content, noted, downloads } = await fit([image, file], { files: false, imageUrls: false });
  expect(downloads).toEqual(["https://example.com/a.png", "https://example.com/a.pdf"]);
  expect(noted).toEqual(["image-data messages[0].content[0]", "file-text messages[0].content[1]"]);
  expect(content).toEqual([
    { type: "image", url: "data:image/png;base64,AA==", detail: "low" },
    {
      type: "text",
      text: '<file name="a.pdf">\ndownloaded\n[The rest of the file is left out.]\n</file>',
      cacheMinutes: 5,
    },
  ]);
});

test("an image that turns out to fit is left as it is", async () => {
  const image: ContentPart = { type: "image", url: "data:image/png;base64,iVBORw0KGgoAAAA=" };
  expect(await fit([image], { maxImageSide: 100 })).toEqual({ content: [image], noted: [], downloads: [] });
});

test("the failure names the part, its file and the reason", async () => {
  const file: ContentPart = { type: "file", name: "a.pdf", data: "broken" };
  await expect(fit([{ type: "text", text: "a" }, file], { files: false })).rejects.toMatchObject({
    failure: {
      status: 400,
      param: "messages[0].content[1]",
      message:
        'messages[0].content[1]: The file "a.pdf" cannot be read as text, and the model takes no files: it is damaged.',
    },
  });
  const many = Array.from({ length: 101 }, (): ContentPart => ({ type: "file", data: "a" }));
  await expect(fit(many, { files: false })).rejects.toThrow("the request has 101 of them");
});

test("a note that throws, as for a source with strict, stops before anything is downloaded", async () => {
  const asked = request([{ type: "file", url: "https://example.com/a.pdf" }]);
  const downloads: string[] = [];
  const profile = { files: false };
  const note = (): never => {
    throw new Error("strict");
  };
  const fitted = fitMedia(asked, unfitParts(asked, profile), profile, fakeBackground(downloads), note);
  await expect(fitted).rejects.toThrow("strict");
  expect(downloads).toEqual([]);
});

// Only http: and https: counted as URLs, so a server that takes none was asked to open `file:///etc/passwd`. Tests had no other scheme.
test.each([
  "file:///etc/passwd",
  "ftp://example.com/a.png",
  "//example.com/a.png",
  " file:///etc/passwd",
  "FILE:/etc/passwd",
  "gopher:x",
  "/etc/passwd",
  "\\\\host\\share\\a.png",
])("the image URL %j is refused for a server without image URLs", async (url) => {
  const refused = fit([{ type: "image", url }], { imageUrls: false });
  await expect(refused).rejects.toMatchObject({
    failure: { status: 400, param: "messages[0].content[0]" },
    message:
      "messages[0].content[0]: The image cannot be sent to the model: its URL must begin with https:, http: or data:.",
  });
});

test("an image in base64 without a URL is left as it is", async () => {
  const url = btoa("\x89PNG\r\n\x1a\n0123456789");
  const { content, downloads } = await fit([{ type: "image", url }], { imageUrls: false });
  expect([content, downloads]).toEqual([[{ type: "image", url }], []]);
});
