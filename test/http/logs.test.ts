import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { Log, LogFields } from "../../src/serve/server/log.ts";
import { answer, asked, callOf, failed, ScriptedEngine, until } from "../support/scripted-engine.ts";
import { chat, events, serving } from "../support/transports.ts";
import { keyOf, withKey } from "../keys/support.ts";
import { event, finish, role, startScripted } from "../upstream/scripted-server.ts";

interface Line extends LogFields {
  readonly level: string;
  readonly message: string;
}

function recordingLog(): { log: Log; lines: Line[] } {
  const lines: Line[] = [];
  const at = (level: string) => (fields: LogFields, message: string) => void lines.push({ ...fields, level, message });
  return { log: { debug: () => {}, info: at("info"), warn: at("warn"), error: at("error") }, lines };
}

describe("the log", () => {
  test("has one line for each request: finished, with its tool calls, refused, failed, cancelled", async () => {
    const engine = new ScriptedEngine(async function* (request, signal) {
      if (asked(request) === "call") yield* callOf("f", "{}");
      else if (asked(request) === "fail")
        yield [failed("engine-error", { status: 503, cause: new Error("deep down") })];
      else if (asked(request) === "wait") {
        await once(signal, "abort");
        yield* answer([]);
      } else yield* answer(["Hi"]);
    });
    const { log, lines } = recordingLog();
    const server = await createServer({ ...serving(engine), port: 0 }, { log });
    const post = (init: RequestInit): Promise<Response> => fetch(`${server.url}/v1/chat/completions`, init);

    const first = await post(chat("Hello", { stream: true }));
    await first.text();
    const tools = [{ type: "function", function: { name: "f" } }];
    await (await post(chat("call", { tools }))).text();
    await (await post(chat("x", { n: 0 }))).text();
    await (await post(chat("fail"))).text();
    const leaving = new AbortController();
    const cancelled = post({ ...chat("wait"), signal: leaving.signal });
    cancelled.catch(() => {});
    await until(() => engine.running === 1, "it waits");
    leaving.abort();
    await until(() => lines.length === 5, "five lines are written");

    expect(lines[0]).toMatchObject({
      level: "info",
      message: "finished",
      req: first.headers.get("x-request-id"),
      method: "POST",
      path: "/v1/chat/completions",
      model: "scripted",
      stream: true,
      status: 200,
      promptTokens: 3,
      completionTokens: 1,
      finish: "stop",
    });
    expect(lines[1]).toMatchObject({ message: "finished", toolCalls: 1, finish: "tool-calls", stream: false });
    expect(lines[2]).toMatchObject({ level: "info", message: "refused", status: 400 });
    expect(lines[3]).toMatchObject({
      level: "error",
      message: "failed",
      status: 503,
      end: "engine-error",
      error: "It broke.",
    });
    expect(lines[3]?.cause).toMatch(/^Error\n +at .*logs\.test\.ts/);
    expect(JSON.stringify(lines)).not.toContain("deep down");
    expect(lines[4]).toMatchObject({ level: "info", message: "cancelled by client" });
    await server.close(0);
  });

  test("tells the story of a request to another server in its one line: whose, how long, tokens, attempts, repairs", async () => {
    const upstream = await startScripted((response, _body, attempt) => {
      if (attempt === 1) return void response.writeHead(503).end("{}");
      const usage = { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 5 } };
      const tokens = `data: ${JSON.stringify({ choices: [], usage })}\n\n`;
      // Its stream has no end mark.
      response.end(role + event({ content: "Hi" }) + finish + tokens);
    });
    const { log, lines } = recordingLog();
    const { key, entry } = keyOf("alice");
    const models = [{ kind: "upstream", url: upstream.url }] as const;
    const server = await createServer({ models, keys: [entry], port: 0 }, { log });
    const { status } = await fetch(
      `${server.url}/v1/chat/completions`,
      withKey(key, chat("Hello", { model: "m", stream: true })),
    );
    expect(status).toBe(200);
    await until(() => lines.some(({ message }) => message === "finished"), "its line is written");
    await server.close(0);
    await upstream.close();
    expect(lines.filter(({ path }) => path !== undefined)).toEqual([
      expect.objectContaining({
        message: "finished",
        api: "chat",
        key: "alice",
        model: "m",
        status: 200,
        ms: expect.any(Number) as number,
        firstMs: expect.any(Number) as number,
        promptTokens: 9,
        cachedTokens: 5,
        completionTokens: 2,
        finish: "stop",
        attempts: 2,
        repairs: expect.objectContaining({ "no-done": 1 }) as object,
      }),
    ]);
  });

  test("warns when everybody on the network may use the API", async () => {
    const engine = new ScriptedEngine(() => answer(["Hi"]));
    const { log, lines } = recordingLog();
    await (await createServer({ ...serving(engine), host: "0.0.0.0", port: 0 }, { log })).close(0);
    expect(lines).toMatchObject([{ level: "warn", message: expect.stringContaining("--api-key") as string }]);
    const guarded = recordingLog();
    await (
      await createServer({ ...serving(engine), host: "0.0.0.0", port: 0, apiKey: "k" }, { log: guarded.log })
    ).close(0);
    await (await createServer({ ...serving(engine), port: 0 }, { log: guarded.log })).close(0);
    expect(guarded.lines).toEqual([]);
  });
});

describe("--log-stream", () => {
  test("appends every event as it was sent, with time and request id, and never a key", async () => {
    const folder = await mkdtemp(join(tmpdir(), "truewire-"));
    const file = join(folder, "events.log");
    const engine = new ScriptedEngine(() => answer(["my key is sk-very-secret", "\n\n", "done"]));
    const config = {
      ...serving(engine),
      port: 0,
      logLevel: "silent",
      logStream: file,
      apiKey: "sk-very-secret",
    } as const;
    const ids: (string | null)[] = [];
    const sent: unknown[] = [];
    for (let run = 0; run < 2; run++) {
      const server = await createServer(config);
      const init = chat("x", { stream: true });
      const headers = { ...(init.headers as Record<string, string>), authorization: "Bearer sk-very-secret" };
      const response = await fetch(`${server.url}/v1/chat/completions`, { ...init, headers });
      ids.push(response.headers.get("x-request-id"));
      sent.push(...events(await response.text()));
      await server.close(0);
    }
    const text = await readFile(file, "utf8");
    expect(text).not.toContain("sk-very-secret");
    expect(text).toContain("my key is [key]");
    const lines = text.trimEnd().split("\n");
    expect(lines).toHaveLength(sent.length);
    for (const [at, line] of lines.entries()) {
      const [, time = "", id, event = ""] = /^(\S+) (\S+) (data: .*)$/.exec(line) ?? [];
      expect(new Date(time).toISOString()).toBe(time);
      expect(ids[at < lines.length / 2 ? 0 : 1]).toBe(id);
      expect(events(event)).toEqual([JSON.parse(JSON.stringify(sent[at]).replace("sk-very-secret", "[key]"))]);
    }
    await rm(folder, { recursive: true });
  });
});
