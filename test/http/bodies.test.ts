import { deflateSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { answer, asked, ScriptedEngine } from "../support/scripted-engine.ts";
import { serving, transports } from "../support/transports.ts";
import type { Api } from "../support/transports.ts";

const body = JSON.stringify({ model: "scripted", messages: [{ role: "user", content: "grün" }] });

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
    [
      "packed with deflate",
      { "content-type": "application/json", "content-encoding": "deflate" },
      new Uint8Array(deflateSync(body)),
    ],
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
    ["application/json", { "content-encoding": "br" }],
  ] as [string, Record<string, string>][])("a body declared as %s %j is a 415", async (type, more) => {
    const { status, told } = await post(body, { "content-type": type, ...more });
    expect(status).toBe(415);
    expect(told).toMatchObject({ code: "unsupported_content_type" });
  });

  test("a packed body that is broken is a 400", async () => {
    const broken = new Uint8Array(gzipSync(body).subarray(0, 30));
    const { status, told } = await post(new Blob([broken]), {
      "content-type": "application/json",
      "content-encoding": "gzip",
    });
    expect(status).toBe(400);
    expect(told).toMatchObject({ message: "The request body is not valid gzip data." });
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
    const bomb = new Uint8Array(gzipSync(large));
    expect(bomb.length).toBeLessThan(1000);
    expect(await post(new Blob([bomb]), { ...headers, "content-encoding": "gzip" })).toMatchObject({ status: 413 });
  });

  test.each(["null", "3", '"text"', "[]"])("the JSON value %s is refused, not a crash", async (text) => {
    const { status, told } = await post(new Blob([text]), { "content-type": "application/json" });
    expect(status).toBe(400);
    expect(told).toHaveProperty("message");
  });
});
