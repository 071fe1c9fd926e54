import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { serveFixture } from "../support/fixture-server.ts";
import type { FixtureServer } from "../support/fixture-server.ts";
import { hostileBodies, validBodies } from "../support/hostile-bodies.ts";
import type { HostileBody } from "../support/hostile-bodies.ts";
import { say, startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";

/** `TRUEWIRE_HOSTILE=1` sends every body; each `step`-th one is enough to see that what reads a request is connected. */
const step = process.env["TRUEWIRE_HOSTILE"] === "1" ? 1 : 53;

// `"type": {"toString": 1}` in a request of Messages was answered with 500; src/wire/apis/hostile-members.test.ts reads every body.
describe("objects whose members hide what every object inherits", () => {
  let folder: string;
  let upstream: ScriptedServer;
  let server: FixtureServer;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "truewire-hostile-"));
    const program = join(folder, "hello.mjs");
    writeFileSync(program, "export default async function* ({ messages }) { yield `Hello ${messages.length}`; }");
    upstream = await startScripted((response, body) => {
      if (response.req.url?.endsWith("completions") === true) return say(response, body, "Hi");
      response.writeHead(404).end('{"error":{"message":"Not found."}}');
    });
    server = await serveFixture("--slots", "2", `program=${program}`, upstream.url);
  });
  afterAll(async () => {
    await server.close();
    await upstream.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const post = async (path: string, { text, name }: HostileBody): Promise<string | undefined> => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(server.url + path, { method: "POST", headers, body: text });
    const answer = await response.text();
    // 501: the engine has no such function. A stream that breaks has its failure inside.
    const broken = response.status === 200 && /"(?:server_error|api_error|internal_error)"|event: error/.test(answer);
    if ((response.status >= 500 && response.status !== 501) || broken)
      return `${path}: ${name}: ${response.status} ${answer.slice(0, 300)}`;
    return undefined;
  };

  test.each(["programmed", "program", "m"])("at every place of requests to the model %s: no 5xx", async (model) => {
    const failures: string[] = [];
    let asked = 0;
    for (const { path, body } of validBodies(model)) {
      for (const [at, hostile] of [...hostileBodies(body)].entries()) {
        if (at % step !== 0) continue;
        asked++;
        const failure = await post(path, hostile);
        if (failure !== undefined) failures.push(failure);
      }
    }
    expect(failures).toEqual([]);
    expect(asked).toBeGreaterThan(100);
  });

  test("at every place of requests of the admin API: no 5xx", async () => {
    const bodies = [
      ["/admin/models/load", { model: "programmed" }],
      ["/admin/models/unload", { model: "m" }],
      ["/admin/models/pull", { model: "m" }],
      ["/admin/models/keep", { model: "programmed", keep: false }],
      ["/admin/check", { url: `${upstream.url}`, model: "m", only: ["chat"], profile: "lean" }],
    ] as const;
    const failures: string[] = [];
    for (const [path, body] of bodies) {
      for (const hostile of hostileBodies(body)) {
        // A body that is still valid does what it says: a download, a check of minutes.
        if (/with|model: ("|{)/.test(hostile.name)) continue;
        const failure = await post(path, hostile);
        // A check that cannot begin is told as one that failed.
        if (failure !== undefined && !failure.includes("check_failed")) failures.push(failure);
      }
    }
    expect(failures).toEqual([]);
  });

  test("at every place of a message of a WebSocket: no 5xx, and the connection goes on", async () => {
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`);
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    const ask = (text: string): Promise<{ status?: number; type: string }> =>
      new Promise((resolve, reject) => {
        const onClose = (): void => reject(new Error(`The connection was closed after ${text}`));
        socket.once("close", onClose);
        socket.on("message", function read(data: Buffer) {
          const event = JSON.parse(data.toString()) as { status?: number; type: string };
          if (!/^(error|response\.(completed|incomplete|failed))$/.test(event.type)) return;
          socket.off("message", read).off("close", onClose);
          resolve(event);
        });
        socket.send(text);
      });
    const body = { type: "response.create", model: "programmed", input: "Hi", max_output_tokens: 16 };
    for (const { name, text } of hostileBodies(body)) {
      const { status = 200, type } = await ask(text);
      expect({ name, type, failed: status >= 500 }).toEqual({ name, type, failed: false });
      expect(type, name).not.toBe("response.failed");
    }
    expect(await ask(JSON.stringify(body))).toMatchObject({ type: expect.stringMatching(/completed|incomplete/) });
    socket.close();
  });
});
