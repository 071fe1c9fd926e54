import { expect, test } from "vitest";
import type { ContentPart } from "../../core/message.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { unfitParts, withParts } from "./fit-media.ts";

const file: ContentPart = { type: "file", name: "a.pdf", data: "JVBERi0=" };
const image: ContentPart = { type: "image", url: "https://example.com/a.png" };
const png: ContentPart = { type: "image", url: "data:image/webp;base64,iVBORw0KGgoAAAANSUhEUg==" };
const text: ContentPart = { type: "text", text: "Hi" };

function request(content: readonly ContentPart[], path?: string): GenerationRequest {
  return {
    id: "r",
    model: "m",
    prompt: {
      kind: "chat",
      messages: [
        { role: "system", content: "S" },
        { role: "user", content, ...(path !== undefined && { path }) },
      ],
      template: {},
    },
    sampling: {},
    limits: {},
    wantsUsage: false,
    stream: false,
    extra: {},
    passthrough: {
      dialect: "chat",
      body: {
        top: 1,
        messages: [
          { role: "system", content: "S" },
          { role: "user", name: "u", content: content.map((part, at) => ({ type: part.type, own: at })) },
        ],
      },
    },
  };
}

test("parts that a server does not take are found at their places", () => {
  const asked = request([text, file, image, png], "input[3]");
  expect(unfitParts(asked, {})).toEqual([]);
  expect(unfitParts(asked, { files: false, imageUrls: false })).toEqual([
    { name: "file-text", part: file, place: "input[3].content[1]" },
    { name: "image-data", part: image, place: "input[3].content[2]" },
  ]);
  expect(unfitParts(asked, { files: false, adapt: { "file-text": false } })).toEqual([]);
  expect(
    unfitParts(
      request([
        { type: "file", text: "own" },
        { type: "file", id: "f" },
      ]),
      { files: false },
    ),
  ).toEqual([]);
});

test("an image's type is that of its bytes", () => {
  expect(unfitParts(request([png]), { imageTypes: ["image/png"] })).toEqual([]);
  expect(unfitParts(request([png]), { imageTypes: ["image/webp"] })).toHaveLength(1);
  expect(unfitParts(request([png]), { maxImageSide: 100 })).toHaveLength(1);
  expect(unfitParts(request([{ type: "image", url: "data:,%%" }]), { imageTypes: ["image/png"] })).toHaveLength(1);
});

test("only these parts of the client's own JSON are replaced", () => {
  const asked = request([text, file]);
  const fitted = withParts(asked, new Map([[file, { type: "text", text: "<file>" }]]));
  expect(fitted.prompt).toMatchObject({ messages: [{}, { content: [text, { type: "text", text: "<file>" }] }] });
  expect(fitted.passthrough?.body).toEqual({
    top: 1,
    messages: [
      { role: "system", content: "S" },
      {
        role: "user",
        name: "u",
        content: [
          { type: "text", own: 0 },
          { type: "text", text: "<file>" },
        ],
      },
    ],
  });
  expect(withParts(asked, new Map())).toBe(asked);
  const other = { ...asked, passthrough: { dialect: "responses", body: {} } };
  expect(withParts(other, new Map([[file, text]]))).not.toHaveProperty("passthrough");
});
