import { expect, test } from "vitest";
import type { FailureError } from "../../../wire/core/failure.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";
import { hasForeignImages, readImages } from "./read-images.ts";

const png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==";

function asked(...urls: readonly string[]): GenerationRequest {
  return {
    id: "req_1",
    model: "m",
    prompt: {
      kind: "chat",
      messages: [
        { role: "user", content: "Hi" },
        {
          role: "tool",
          toolCallId: "t1",
          content: [{ type: "text", text: "here" }, ...urls.map((url) => ({ type: "image" as const, url }))],
        },
      ],
      template: {},
    },
    sampling: {},
    limits: {},
    extra: {},
  } as unknown as GenerationRequest;
}

test("only images that libmtmd does not read are read, those of tool results, too", async () => {
  const read: string[] = [];
  const reader = (url: string): Promise<string> => {
    read.push(url);
    return Promise.resolve(png);
  };
  expect(hasForeignImages(asked(png))).toBe(false);
  const request = asked(png, "https://example.com/a.webp", "data:image/webp;base64,UklGRg==");
  expect(hasForeignImages(request)).toBe(true);
  expect(await readImages(request, reader)).toEqual(asked(png, png, png));
  expect(read).toEqual(["https://example.com/a.webp", "data:image/webp;base64,UklGRg=="]);
});

test("an image that cannot be read is refused with its place", async () => {
  const refused = readImages(asked(png, "https://example.com/a.webp"), () => Promise.reject(new Error("it is gone")));
  await expect(refused).rejects.toMatchObject({
    failure: {
      param: "messages[1].content[2]",
      message: "The image cannot be read: it is gone.",
      status: 400,
      image: { why: "url", url: "https://example.com/a.webp" },
    },
  });
  // A refusal repeated the whole URL, of megabytes.
  const long = readImages(asked(`https://example.com/${"a".repeat(1e6)}`), () => Promise.reject(new Error("no")));
  await expect(long).rejects.toSatisfy((error) => JSON.stringify((error as FailureError).failure).length < 2000);
});
