import { describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { listen, type Listening } from "../support/listen.ts";
import { freePort } from "../support/redis-server.ts";
import { answer, ScriptedEngine, until } from "../support/scripted-engine.ts";
import { chat } from "../support/transports.ts";

/** A server of OpenAI's API with these models, at a port. */
async function upstreamAt(port: number, models: () => readonly string[], status = 200): Promise<Listening> {
  return listen((request, response) => {
    response.setHeader("content-type", "application/json");
    if (request.url?.endsWith("/models") === true) {
      response.writeHead(status);
      response.end(
        JSON.stringify({ object: "list", data: models().map((id) => ({ id, object: "model", created: 1 })) }),
      );
    } else if (request.method === "GET") response.writeHead(405).end("{}");
    else {
      const choices = [{ index: 0, message: { role: "assistant", content: "I am back." }, finish_reason: "stop" }];
      response.end(JSON.stringify({ id: "x", object: "chat.completion", created: 1, model: "late", choices }));
    }
  }, port);
}

async function names({ url }: TruewireServer): Promise<string[]> {
  const list = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
  return list.data.map(({ id }) => id);
}

interface Health {
  readonly status: string;
  readonly missing?: readonly string[];
  readonly engines: readonly { readonly name: string; readonly state: string; readonly message?: string }[];
}

async function health({ url }: TruewireServer): Promise<Health> {
  return (await (await fetch(`${url}/health`)).json()) as Health;
}

describe("an upstream that is down when the server starts", () => {
  // It said to name the models, which does not help. No test had an address with https.
  test("an address with https says that http may be meant", async () => {
    const url = `https://127.0.0.1:${await freePort()}/v1`;
    const server = await createServer({
      port: 0,
      logLevel: "silent",
      models: [{ kind: "upstream", name: "away", url }],
    });
    const [{ message = "" } = {}] = (await health(server)).engines;
    expect(message).toContain(`If it speaks plain HTTP, use http:// in the URL: ${url.replace("https:", "http:")}`);
    expect(message).not.toContain("--model NAME");
    await server.close(0);
  });

  // One unreachable upstream kept the whole server from starting.
  test("the rest is served; it is taken in when it comes", async () => {
    const port = await freePort();
    const here = new ScriptedEngine(() => answer(["Hi"]), "here");
    const upstream = { kind: "upstream", name: "away", url: `http://127.0.0.1:${port}/v1` } as const;
    const server = await createServer({
      port: 0,
      logLevel: "silent",
      models: [upstream, { kind: "engine", engine: here }],
    });
    expect(await names(server)).toEqual(["here"]);
    expect((await fetch(`${server.url}/v1/chat/completions`, chat("x", { model: "here" }))).status).toBe(200);
    expect(await health(server)).toMatchObject({
      status: "ok",
      missing: ["away"],
      engines: [{ name: "away", state: "failed", message: expect.stringContaining("cannot be listed") as string }, {}],
    });
    // Whether it will have the model, nobody knows yet: that is no 404.
    const unknown = await fetch(`${server.url}/v1/chat/completions`, chat("x", { model: "late" }));
    expect([unknown.status, unknown.headers.get("retry-after")]).toEqual([503, "5"]);
    const back = await upstreamAt(port, () => ["late"]);
    await until(async () => (await names(server)).join() === "late,here", "the upstream's models are listed");
    const response = await fetch(`${server.url}/v1/chat/completions`, chat("x", { model: "late" }));
    expect(await response.text()).toContain("I am back.");
    expect((await health(server)).missing).toBeUndefined();
    const nobody = await fetch(`${server.url}/v1/chat/completions`, chat("x", { model: "nobody" }));
    expect(nobody.status).toBe(404);
    await server.close(0);
    await back.close();
  });

  test("nothing at all is reachable: it starts, and says so", async () => {
    const lines: string[] = [];
    const note = (fields: object, line: string): void => void lines.push(`${line} ${JSON.stringify(fields)}`);
    const log = { debug: note, info: note, warn: note, error: note };
    const url = `http://127.0.0.1:${await freePort()}/v1`;
    const server = await createServer({ port: 0, models: [{ kind: "upstream", name: "away", url }] }, { log });
    expect(lines.join("\n")).toMatch(/does not answer yet.*"model":"away"/);
    const response = await fetch(`${server.url}/health`);
    expect([response.status, ((await response.json()) as Health).missing]).toEqual([503, ["away"]]);
    await server.reload({ models: [{ kind: "upstream", name: "other", url }] });
    expect((await health(server)).missing).toEqual(["other"]);
    await server.close(0);
  });

  test("one that is starting (503) is waited for; one that refuses its list (401, 404) is a mistake that is told at once", async () => {
    for (const [status, starts] of [
      [503, true],
      [401, false],
      [404, false],
    ] as const) {
      const upstream = await upstreamAt(0, () => [], status);
      const server = createServer({ port: 0, logLevel: "silent", models: [`${upstream.url}/v1`] });
      if (starts) await (await server).close(0);
      else await expect(server).rejects.toThrow(`status ${status}`);
      await upstream.close();
    }
    await expect(createServer({ port: 0, models: [{ kind: "upstream", url: "htp:/typo" }] })).rejects.toThrow(
      "base URL",
    );
  });
});
