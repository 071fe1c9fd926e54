import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import type { Log } from "../../src/serve/server/log.ts";
import { answer, ScriptedEngine, sleep } from "../support/scripted-engine.ts";
import { chat, serving } from "../support/transports.ts";
import { event, finish, role } from "../upstream/scripted-server.ts";
import { closeAfterTest, listenInTest } from "../support/close-after-test.ts";

const key = "sk-upstream-0123456789";
function recording(lines: string[]): Log {
  const note = (fields: object, message: string): void => void lines.push(JSON.stringify({ ...fields, message }));
  return { debug: note, info: note, warn: note, error: note };
}

/** An upstream that says what it was given as its key, wherever it can. */
async function gossip(): Promise<string> {
  const { port } = await listenInTest((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      const given = String(request.headers.authorization).slice("Bearer ".length);
      if (request.url?.includes("gone")) response.destroy();
      else if (request.headers.accept !== "text/event-stream")
        response.writeHead(401).end(JSON.stringify({ error: { message: `Incorrect API key: ${given}`, code: given } }));
      else if (body.includes('"break"')) {
        const error = { message: `The key ${given} has expired.`, type: "server_error", code: null, param: null };
        response.end(`${role}${event({ content: "Well" })}data: ${JSON.stringify({ error })}\n\n`);
      } else {
        const pieces = [given.slice(0, 9), given.slice(9, 15), `${given.slice(15)} is it`, "; sk-up is not"];
        response.end(role + pieces.map((content) => event({ content })).join("") + finish);
      }
    });
  });
  return `127.0.0.1:${port}`;
}

describe("a configured secret", () => {
  async function behind(url: string): Promise<{ url: string; lines: string[] }> {
    const lines: string[] = [];
    const config: TruewireConfig = {
      port: 0,
      models: [{ kind: "upstream", name: "gossip", url, key, models: { scripted: "m" }, retries: 1 }],
    };
    const server = await createServer(config, { log: recording(lines) });
    closeAfterTest(() => server.close(0));
    return { url: `${server.url}/v1/chat/completions`, lines };
  }

  /** The 401 of an upstream, with its key in it, went to the client and the log. */
  test("is masked in errors, also of an open stream, and in the log; what a model writes is passed on", async () => {
    const { url, lines } = await behind(`http://${await gossip()}/v1`);
    const refused = await (await fetch(url, chat("x"))).text();
    expect(refused).toContain("Incorrect API key: [key]");
    const stream = await (await fetch(url, chat("x", { stream: true }))).text();
    const text = [...stream.matchAll(/"content":"([^"]*)"/g)].map(([, piece]) => piece).join("");
    expect(text).toBe(`${key} is it; sk-up is not`);
    const broken = await (await fetch(url, chat("break", { stream: true }))).text();
    expect(broken).toContain('"content":"Well"');
    expect(broken).toContain("The key [key] has expired.");
    for (const told of [refused, broken, ...lines]) expect(told).not.toContain(key);
    expect(lines.join()).toContain('"error":"authentication"');
    expect(lines.join()).not.toContain("Incorrect API key");
  });

  test("in an upstream's URL is in no log line", async () => {
    const { url, lines } = await behind(`http://someone:hunter2@${await gossip()}/v1/gone?api_key=secret-42`);
    for (let i = 0; i < 4; i++) expect((await fetch(url, chat("x"))).status).toBe(502);
    expect(lines.join("\n")).toContain("tried again");
    expect(lines.join("\n")).not.toMatch(/hunter2|secret-42/);
    for (const path of ["/health", "/", "/v1/models", "/v1/chat/completions", "/v1/models/gone"])
      expect(await (await fetch(new URL(path, url), path.includes("chat") ? chat("x") : {})).text()).not.toMatch(
        /hunter2|secret-42/,
      );
  });
});

describe("--log-stream", () => {
  const folder = (): string => {
    const made = mkdtempSync(join(tmpdir(), "truewire-log-"));
    closeAfterTest(() => rmSync(made, { recursive: true }));
    return made;
  };
  const engine = new ScriptedEngine(() => answer(["Hi"]));

  test.runIf(process.platform !== "win32")("makes a file that only its owner can read", async () => {
    const file = join(folder(), "events.log");
    const server = await createServer({ ...serving(engine), port: 0, logLevel: "silent", logStream: file });
    await (await fetch(`${server.url}/v1/chat/completions`, chat("x", { stream: true }))).text();
    await server.close(0);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, "utf8")).toContain('"Hi"');
  });

  /** The log ended without a word. */
  test.runIf(process.platform === "linux")("tells of a full disk, once, and the answers go on", async () => {
    const lines: string[] = [];
    const config = { ...serving(engine), port: 0, logStream: "/dev/full" };
    const server = await createServer(config, { log: recording(lines) });
    for (let i = 0; i < 3; i++) {
      const answered = await fetch(`${server.url}/v1/chat/completions`, chat("x", { stream: true }));
      expect(await answered.text()).toContain("[DONE]");
      await sleep(20);
    }
    await server.close(0);
    expect(lines.filter((line) => line.includes("ENOSPC"))).toHaveLength(1);
  });

  /** The server hung at its start. */
  test.runIf(process.platform !== "win32")("to a pipe without a reader is an error immediately", async () => {
    const pipe = join(folder(), "pipe");
    execFileSync("mkfifo", [pipe]);
    const config = { ...serving(engine), port: 0, logLevel: "silent", logStream: pipe } as const;
    await expect(createServer(config)).rejects.toThrow("is a pipe without a reader");
  });
});
