import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { answer, asked, ScriptedEngine } from "../support/scripted-engine.ts";
import { serving, transports } from "../support/transports.ts";
import type { Api } from "../support/transports.ts";

const body = JSON.stringify({ model: "scripted", messages: [{ role: "user", content: "grün" }] });

const json = { "content-type": "application/json" };

/** `body` as zstd 1.5.7 compresses it: Node 20 cannot. */
const zstd = Buffer.from(
  "KLUv/SBDGQIAeyJtb2RlbCI6InNjcmlwdGVkIiwibWVzc2FnZXMiOlt7InJvbGUiOiJ1c2VyIiwiY29udGVudCI6Imdyw7xuIn1dfQ==",
  "base64",
);
/** A longer conversation in several compressed blocks, as a stream: the header does not have the size. */
const zstdStream = Buffer.from(
  "KLUv/QBY7QoAFtAwJZClSQf5u7t7ac9BJDGISENo23CbNfyV+2Mme+8tZUr7g5L9H8QwACgAHADnAJCwBMEh1yisURbDEY5hbcAhx5KFOUYBco0hCq2xxRHuwBoBCsbQDrmEHZbFMQI97eqqaurRQqkWJiPKpzLWxzq1UQpNU7RWIDRuoAVYloPjHO2QLIkjR3766aN//779+vWPvaysnIxqVGeNNdZv3bZtAw2DxikECjCIYh7MlStVpkyJnvnMJx5/9NHHHs/xHBcqVJgCeqgxpL21fweAM1K6ARIYRQoKXiJwCL8iQGgf/g5sGwYcMCTjMt6TvREGsXjm5JYNwnBwbc5/d87hQFQHWxZDMLDqQsCxNS/qxka4SBs7p4VxauhGAw5mNBlHMSKMFy+6i7MWncXJiqbi+hTHQ8HyhI8xgUEJJwk6Qlt4NLx0FGYx6IN1GDE8DOYN+AMuCxhD7Gh1svRYBSi1L/0gAAEAAA==",
  "base64",
);

/** A frame whose blocks each repeat one byte 128 KiB times: four bytes of it are 128 KiB. */
function zstdBomb(blocks: number): Buffer {
  const block = ((128 * 1024) << 3) | (1 << 1);
  const bytes = Buffer.alloc(6 + 4 * blocks, 32);
  bytes.set([0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3]);
  for (let at = 0; at < blocks; at++) bytes.writeUIntLE(block | (at === blocks - 1 ? 1 : 0), 6 + 4 * at, 3);
  return bytes;
}

describe.each(transports)("bodies through $name", ({ open }) => {
  let api: Api;
  beforeAll(async () => {
    api = await open(serving(new ScriptedEngine((request) => answer([asked(request)])), { bodyLimit: "64KiB" }));
  });
  afterAll(() => api.close());

  async function post(
    content: string | Blob,
    headers: Record<string, string>,
  ): Promise<{ status: number; told: unknown }> {
    const response = await api.fetch("/v1/chat/completions", { method: "POST", body: content, headers });
    const value = (await response.json()) as {
      choices?: { message: { content: string } }[];
      error?: { message: string; code: string | null };
    };
    return { status: response.status, told: value.choices?.[0]?.message.content ?? value.error };
  }

  test.each([
    ["as it is", {}, body],
    ["declared as JSON", { "content-type": "application/json" }, body],
    ["with a charset", { "content-type": "application/json; charset=UTF-8" }, body],
    ["with a quoted charset", { "content-type": 'application/json;charset="utf-8"' }, body],
    ["as vendor JSON", { "content-type": "application/vnd.api+json" }, body],
    [
      "in Latin-1",
      { "content-type": "application/json; charset=iso-8859-1" },
      new Uint8Array(Buffer.from(body, "latin1")),
    ],
    ["with a byte order mark", { "content-type": "application/json" }, `\uFEFF${body}`],
    [
      "packed with gzip",
      { "content-type": "application/json", "content-encoding": "gzip" },
      new Uint8Array(gzipSync(body)),
    ],
    ...(
      [
        ["deflate", deflateSync(body)],
        // Without the header of zlib, as some clients send it.
        ["deflate", deflateRawSync(body)],
        // Codex with a ChatGPT login compresses its requests with zstd, and got six times a 415: our tests knew gzip and deflate only.
        ["zstd", zstd],
        ["zstd", zstdStream],
        ["ZSTD", zstd],
        ["br", brotliCompressSync(body)],
        ["gzip, br", brotliCompressSync(gzipSync(body))],
        ["deflate,gzip", gzipSync(deflateSync(body))],
        ["zstd, identity, gzip", gzipSync(zstd)],
        ["identity", Buffer.from(body)],
        ["", Buffer.from(body)],
      ] as const
    ).map(([coding, bytes]) => [
      `in the coding ${JSON.stringify(coding)}`,
      { ...json, "content-encoding": coding },
      new Uint8Array(bytes),
    ]),
  ] as [string, Record<string, string>, string | Uint8Array<ArrayBuffer>][])(
    "a body %s is read",
    async (_, headers, content) => {
      // A bare string would be sent as text/plain by fetch itself.
      expect(await post(new Blob([content]), headers)).toEqual({ status: 200, told: "grün" });
    },
  );

  test.each([
    ["no JSON", "{nope", "line 1, column 2: expected a name in double quotes or }, found n"],
    ["blank", " ", "line 1, column 2: expected a value, found the end of the body"],
    ["cut", body.slice(0, -2), "line 1, column 65: expected a comma or ], found the end of the body"],
    ["no UTF-8", new Uint8Array([0x22, 0xff, 0xfe, 0x22]), "expected text in UTF-8"],
    [
      "long",
      `{"messages":[${'{"role":"user","content":"Hi"},\n'.repeat(1900)}]}`,
      "line 1901, column 1: expected a value, found ]",
    ],
  ] as [string, string | Uint8Array<ArrayBuffer>, string][])(
    "a body that is %s is a 400 that names the place, and in profile exact OpenAI's words",
    async (_, content, mistake) => {
      const type = { "content-type": "application/json" };
      const own = { message: `The request body is not valid JSON: ${mistake}.`, code: null };
      expect(await post(new Blob([content]), type)).toMatchObject({ status: 400, told: own });
      const vendors = {
        message: expect.stringMatching(/^We could not parse the JSON body of your request\./) as string,
      };
      expect(await post(new Blob([content]), { ...type, "x-truewire-wire": "exact" })).toMatchObject({
        status: 400,
        told: vendors,
      });
    },
  );

  test.each([
    ["application/x-www-form-urlencoded", {}],
    ["text/plain", {}],
    ["application/json; charset=klingon", {}],
  ] as [string, Record<string, string>][])("a body declared as %s %j is a 415", async (type, more) => {
    const { status, told } = await post(body, { "content-type": type, ...more });
    expect(status).toBe(415);
    expect(told).toMatchObject({ code: "unsupported_content_type" });
  });

  test.each(["compress", "gzip, lzma", "aws-chunked", "gzip,gzip,gzip,gzip,gzip"])(
    "the coding %s is a 415 that names those that are read",
    async (coding) => {
      const { status, told } = await post(body, { ...json, "content-encoding": coding });
      expect(status).toBe(415);
      expect(told).toMatchObject({
        code: "unsupported_content_encoding",
        message: expect.stringMatching(/^Unsupported content encoding: '.*zstd, br, gzip or deflate\.$/) as string,
      });
    },
  );

  test("a coding is refused and a body that is not in it in the words of each API", async () => {
    const at = async (path: string, coding: string, wire: string): Promise<unknown> => {
      const headers = { ...json, "content-encoding": coding, "x-truewire-wire": wire };
      const response = await api.fetch(path, { method: "POST", body, headers });
      return { status: response.status, ...((await response.json()) as object) };
    };
    const type = "invalid_request_error";
    const unsupported = { type, details: { error_code: "request_body_encoding_unsupported" } };
    expect(await at("/v1/messages", "lzma", "lean")).toMatchObject({ status: 415, type: "error", error: unsupported });
    expect(await at("/v1/messages", "lzma", "exact")).toMatchObject({ status: 400, type: "error", error: unsupported });
    const invalid = { type, details: { error_code: "request_body_encoding_invalid" } };
    expect(await at("/v1/messages", "br", "exact")).toMatchObject({ status: 400, type: "error", error: invalid });
    expect(await at("/v1/responses", "lzma", "exact")).toMatchObject({ status: 415, error: { type } });
    expect(await at("/api/chat", "lzma", "exact")).toMatchObject({
      status: 415,
      error: expect.stringContaining("'lzma'") as string,
    });
  });

  test.each([
    ["gzip", gzipSync(body).subarray(0, 30)],
    ["gzip", Buffer.from(body)],
    ["deflate", deflateSync(body).subarray(0, 30)],
    ["br", brotliCompressSync(body).subarray(0, 30)],
    ["zstd", zstd.subarray(0, 30)],
    ["zstd", zstdStream.subarray(0, zstdStream.length - 200)],
    ["zstd", Buffer.concat([zstdStream.subarray(0, 100), Buffer.alloc(zstdStream.length - 100, 7)])],
    ["zstd", Buffer.from(body)],
  ])("a body that is no %s is a 400", async (coding, bytes) => {
    const { status, told } = await post(new Blob([new Uint8Array(bytes)]), { ...json, "content-encoding": coding });
    expect(status).toBe(400);
    expect(told).toMatchObject({ message: `The request body is not valid ${coding} data.` });
  });

  test("a body over the limit is a 413, told or not, and unpacked as well", async () => {
    const large = JSON.stringify({ model: "scripted", padding: "x".repeat(70_000) });
    const headers = { "content-type": "application/json" };
    expect(await post(large, headers)).toMatchObject({ status: 413, told: { code: "request_too_large" } });
    const pieces = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < large.length; at += 10_000)
          controller.enqueue(new TextEncoder().encode(large.slice(at, at + 10_000)));
        controller.close();
      },
    });
    const unannounced = await api.fetch("/v1/chat/completions", {
      method: "POST",
      body: pieces,
      headers,
      duplex: "half",
    });
    expect(unannounced.status).toBe(413);
    for (const [coding, packed] of [
      ["gzip", gzipSync(large)],
      ["deflate", deflateSync(large)],
      ["br", brotliCompressSync(large)],
      // 1 MiB, and 2 GiB.
      ["zstd", zstdBomb(8)],
      ["zstd", zstdBomb(16_000)],
      ["gzip, br", brotliCompressSync(gzipSync(large))],
      ["zstd, gzip", gzipSync(zstdBomb(16_000))],
    ] as const) {
      const told = await post(new Blob([new Uint8Array(packed)]), { ...headers, "content-encoding": coding });
      expect([coding, told]).toMatchObject([coding, { status: 413, told: { code: "request_too_large" } }]);
    }
  });

  test.each(["null", "3", '"text"', "[]"])("the JSON value %s is refused, not a crash", async (text) => {
    const { status, told } = await post(new Blob([text]), { "content-type": "application/json" });
    expect(status).toBe(400);
    expect(told).toHaveProperty("message");
  });
});
