import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect, constants, createSecureServer } from "node:http2";
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import OpenAI from "openai";
import { Agent, fetch as undiciFetch } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHandler } from "../../src/server.ts";
import { selfSigned } from "../support/certificate.ts";
import { answer, asked, ScriptedEngine, sleep, until } from "../support/scripted-engine.ts";
import type { Batch } from "../support/scripted-engine.ts";
import { chat, serving } from "../support/transports.ts";
import { waitMs } from "../support/hang.ts";

const certificate = selfSigned();
const run = promisify(execFile);

async function* speak(words: number): AsyncGenerator<Batch> {
  const [first] = answer(["word "]);
  if (first) yield first;
  for (let word = 1; word < words; word++) {
    await sleep(2);
    yield [{ type: "text-delta", choice: 0, text: "word " }];
  }
  yield [...answer([])].flat();
}

// A server of HTTP/2 with our handler, as somebody else writes it; the cases that all transports share run over it, too.
describe.skipIf(!certificate)("a handler under a server of HTTP/2", () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-http2-"));
  const { cert = "", key = "" } = certificate ?? {};
  const engine = new ScriptedEngine((request) => speak(asked(request) === "endless" ? Infinity : 20));
  const handler = createHandler(serving(engine));
  const server = createSecureServer(
    { allowHTTP1: true, cert, key },
    handler as unknown as (request: Http2ServerRequest, response: Http2ServerResponse) => void,
  );
  const sessions = new Set<ServerHttp2Session>();
  let url: string;
  beforeAll(async () => {
    writeFileSync(join(folder, "ca.pem"), cert);
    server.on("session", (session) => sessions.add(session)).listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    await handler.close(0);
    for (const session of sessions) session.destroy();
    server.close();
    rmSync(folder, { recursive: true });
  });

  test("the openai SDK streams", async () => {
    const dispatcher = new Agent({ allowH2: true, connect: { ca: cert, timeout: waitMs } });
    const fetch = ((input: string, init: object) =>
      undiciFetch(input, { ...init, dispatcher })) as unknown as typeof globalThis.fetch;
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", fetch, maxRetries: 0 });
    const before = sessions.size;
    const texts = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const stream = await client.chat.completions.create({
          model: "scripted",
          messages: [{ role: "user", content: "x" }],
          stream: true,
        });
        let text = "";
        for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
        return text;
      }),
    );
    expect(new Set(texts)).toEqual(new Set(["word ".repeat(20)]));
    expect(sessions.size).toBeGreaterThan(before);
    await dispatcher.destroy();
  });

  test.each([
    ["--http2", "2"],
    ["--http1.1", "1.1"],
  ])("curl %s", async (option, version) => {
    const { body } = chat("x", { stream: true });
    const args = ["-sN", "--cacert", join(folder, "ca.pem"), option, "-w", "%{http_version}"];
    const send = ["-H", "content-type: application/json", "-d", String(body), `${url}/v1/chat/completions`];
    const { stdout } = await run("curl", [...args, ...send]);
    expect(stdout).toMatch(new RegExp(`data: \\[DONE\\]\\n\\n${version.replace(".", "\\.")}$`));
  });

  // Node says of a stream that was reset that its answer had finished: the generation went on for nobody, for ever.
  test.each(["the stream", "the connection"])(
    "a client that leaves, by ending %s, ends its generation",
    async (what) => {
      const session = connect(url, { ca: cert });
      session.on("error", () => {});
      const stream = session.request({
        ":method": "POST",
        ":path": "/v1/chat/completions",
        "content-type": "application/json",
      });
      stream.on("error", () => {});
      stream.end(chat("endless", { stream: true }).body as string);
      await once(stream, "data");
      expect(engine.running).toBe(1);
      if (what === "the stream") stream.close(constants.NGHTTP2_CANCEL);
      else session.destroy();
      await until(() => engine.running === 0, "the generation ended");
      session.destroy();
    },
  );
});
