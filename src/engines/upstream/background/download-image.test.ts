import { createServer } from "node:http";
import type { RequestListener, Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { downloadImage } from "./download-image.ts";
import { FailureError } from "../../../wire/core/failure.ts";

const png = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 1, 2, 3);
let server: Server | undefined;

async function serve(listener: RequestListener): Promise<string> {
  server = createServer(listener).listen(0, "127.0.0.1");
  await new Promise((resolve) => server?.once("listening", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

const local = { allowPrivateAddresses: true };

test("an image comes with its bytes and the type that they show, through a redirect", async () => {
  const url = await serve((request, response) => {
    if (request.url === "/image") response.setHeader("content-type", "text/html").end(png);
    else response.writeHead(302, { location: "/image" }).end();
  });
  expect(await downloadImage(`${url}/start`, local)).toEqual({ bytes: png, mediaType: "image/png" });
});

test.each([
  "http://127.0.0.1/a.png",
  "http://0x7f.1/a.png",
  "http://2130706433/a.png",
  "http://10.1.2.3/a.png",
  "http://192.88.99.1/a.png",
  "http://169.254.169.254/latest/meta-data",
  "http://[::1]/a.png",
  "http://[::ffff:127.0.0.1]/a.png",
  "http://[fd00::1]/a.png",
  "http://[2002:7f00:1::]/a.png",
  "http://localhost/a.png",
])("%s is refused, and nothing is asked there", async (url) => {
  await expect(downloadImage(url)).rejects.toThrow("is not a public address");
});

test("a redirect to a private address is refused", async () => {
  // The first hop is allowed only because everything is; what is looked at is the protocol of the second.
  const url = await serve((_request, response) => response.writeHead(302, { location: "file:///etc/passwd" }).end());
  await expect(downloadImage(url, local)).rejects.toThrow("neither http: nor https:");
});

test.each([
  "file:///etc/passwd",
  "data:image/png;base64,AAAA",
  "ftp://example.com/a.png",
  "no url",
  "http://u:p@example.com/",
])("%s is refused with 400", async (url) => {
  const error: unknown = await downloadImage(url).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(FailureError);
  expect((error as FailureError).failure).toMatchObject({ status: 400, code: "invalid_image_url" });
  expect((error as FailureError).message).not.toContain("u:p");
});

test("an image beyond the limit is given up while it comes", async () => {
  let closed: Promise<unknown> | undefined;
  const url = await serve((_request, response) => {
    closed = new Promise((resolve) => response.once("close", resolve));
    const more = (): void => {
      while (!response.destroyed && response.write(new Uint8Array(65_536)));
      response.once("drain", more);
    };
    more();
  });
  await expect(downloadImage(url, { ...local, maxBytes: 100_000 })).rejects.toThrow("larger than 100000 bytes");
  await closed;
});

test("a server that says nothing is given up, and so is what the caller no longer wants", async () => {
  const url = await serve(() => {});
  await expect(downloadImage(url, { ...local, timeoutMs: 50 })).rejects.toThrow("longer than 50 ms");
  const leave = new AbortController();
  const asked = downloadImage(url, { ...local, signal: leave.signal });
  leave.abort(new Error("enough"));
  await expect(asked).rejects.toThrow("enough");
});

test("redirects without end, other statuses and other files are refused", async () => {
  const url = await serve((request, response) => {
    if (request.url === "/loop") response.writeHead(302, { location: "/loop" }).end();
    else if (request.url === "/none") response.writeHead(404).end();
    else response.end("<html>");
  });
  await expect(downloadImage(`${url}/loop`, local)).rejects.toThrow("redirected more than 3 times");
  await expect(downloadImage(`${url}/none`, local)).rejects.toThrow("status 404");
  await expect(downloadImage(`${url}/page`, local)).rejects.toThrow("no PNG, JPEG, GIF or WebP");
});
