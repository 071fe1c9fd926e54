import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import { answer, ScriptedEngine, until } from "../support/scripted-engine.ts";
import { json, serving } from "../support/transports.ts";

/** What of a response these tests look at. */
interface Shown {
  readonly id: string;
  readonly status: string;
  readonly output: readonly unknown[];
  readonly [member: string]: unknown;
}

describe("background", () => {
  const servers: TruewireServer[] = [];
  const folders: string[] = [];
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.close(0)));
    await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true })));
  });

  /** A server whose engine says one word, and the others when it is told to go on. */
  const opened = async (
    config: TruewireConfig = {},
  ): Promise<{ url: string; engine: ScriptedEngine; goOn: () => void; server: TruewireServer }> => {
    let goOn: () => void = () => {};
    const waiting = new Promise<void>((resolve) => (goOn = resolve));
    const engine = new ScriptedEngine(async function* (_, signal) {
      const [first, ...rest] = answer(["one", " two", " three"]);
      if (first) yield first;
      await Promise.race([waiting, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
      if (!signal.aborted) yield* rest;
    });
    const server = await createServer({ port: 0, logLevel: "silent", ...serving(engine, config) });
    servers.push(server);
    return { url: `${server.url}/v1/responses`, engine, goOn, server };
  };
  const begin = async (url: string, more: object = {}): Promise<Shown> => {
    const response = await fetch(url, json({ model: "scripted", input: "x", background: true, ...more }));
    expect(response.status).toBe(200);
    return (await response.json()) as Shown;
  };
  const show = async (url: string, id: string): Promise<Shown> => (await (await fetch(`${url}/${id}`)).json()) as Shown;
  const statusIs = (url: string, id: string, status: string): Promise<void> =>
    until(async () => (await show(url, id)).status === status, `it is ${status}`);

  test("the client is answered at once, asks again, and finds the whole", async () => {
    const { url, goOn } = await opened();
    const begun = await begin(url);
    expect(begun).toMatchObject({ status: "queued", background: true, output: [], usage: null, completed_at: null });
    expect(await show(url, begun.id)).toMatchObject({ id: begun.id, status: "in_progress" });
    const early = { model: "scripted", input: "y", previous_response_id: begun.id };
    const refused = await fetch(url, json(early));
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { message: `Previous response with id '${begun.id}' is still in progress.` } },
    ]);
    goOn();
    await statusIs(url, begun.id, "completed");
    expect(await show(url, begun.id)).toMatchObject({
      id: begun.id,
      output: [{ content: [{ text: "one two three" }] }],
    });
    expect((await fetch(url, json(early))).status).toBe(200);
  });

  test("the stream is told from any event on, before the end and after it, and goes on when its client leaves", async () => {
    const { url, goOn, engine } = await opened({ wire: "exact" });
    const leaving = new AbortController();
    const request = json({ model: "scripted", input: "x", background: true, stream: true });
    const first = await fetch(url, { ...request, signal: leaving.signal });
    const reader = first.body?.pipeThrough(new TextDecoderStream()).getReader();
    let seen = "";
    while (!seen.includes('"one"')) seen += (await reader?.read())?.value ?? "";
    expect(seen.match(/^event: .*/gm)?.slice(0, 3)).toEqual([
      "event: response.created",
      "event: response.queued",
      "event: response.in_progress",
    ]);
    expect(seen.match(/"status":"\w+"/g)?.slice(0, 3)).toEqual([
      '"status":"queued"',
      '"status":"queued"',
      '"status":"in_progress"',
    ]);
    leaving.abort();
    const id = /"id":"(resp_\w+)"/.exec(seen)?.[1] ?? "";
    const following = fetch(`${url}/${id}?stream=true&starting_after=2`).then((response) => response.text());
    goOn();
    const followed = await following;
    await statusIs(url, id, "completed");
    const whole = await (await fetch(`${url}/${id}?stream=true`)).text();
    expect(numbers(whole)).toEqual(Array.from(numbers(whole).keys()));
    expect(whole.startsWith(seen)).toBe(true);
    expect(whole).toMatch(/event: response\.completed\n.*\n\n$/);
    expect(whole.endsWith(followed)).toBe(true);
    expect(numbers(followed)[0]).toBe(3);
    const late = await (await fetch(`${url}/${id}?stream=true&starting_after=${numbers(whole).length - 2}`)).text();
    expect(numbers(late)).toEqual([numbers(whole).length - 1]);
    expect(engine.aborted).toBe(0);
    for (const after of ["x", "-1"]) {
      expect((await fetch(`${url}/${id}?stream=true&starting_after=${after}`)).status).toBe(400);
    }
  });

  test("it is cancelled, as often as one likes", async () => {
    const { url, engine } = await opened();
    const { id } = await begin(url);
    await until(() => engine.pulled > 0, "it has begun");
    const following = fetch(`${url}/${id}?stream=true`).then((response) => response.text());
    for (let i = 0; i < 2; i++) {
      const cancelled = await fetch(`${url}/${id}/cancel`, { method: "POST" });
      expect([cancelled.status, await cancelled.json()]).toMatchObject([200, { id, status: "cancelled", output: [] }]);
    }
    await until(() => engine.running === 0, "the engine is free");
    expect((await following).endsWith("data: [DONE]\n\n")).toBe(true);
  });

  test("deleting it stops it", async () => {
    const { url, engine } = await opened();
    const { id } = await begin(url);
    expect((await fetch(`${url}/${id}`, { method: "DELETE" })).status).toBe(200);
    await until(() => engine.running === 0, "the engine is free");
    expect((await fetch(`${url}/${id}`)).status).toBe(404);
    expect((await fetch(`${url}/${id}?stream=true`)).status).toBe(404);
  });

  test("with store: false it is found for some minutes, and is in no store", async () => {
    const folder = await mkdtemp(join(tmpdir(), "truewire-background-"));
    folders.push(folder);
    const { url, goOn } = await opened({ store: folder });
    const { id } = await begin(url, { store: false });
    goOn();
    await statusIs(url, id, "completed");
    expect(await (await fetch(`${url}/${id}?stream=true`)).text()).toContain("response.completed");
    // The key of the installation and the folders of turns, files and usage are there from the start.
    const own = new Set(["truewire.key", "turns", "files", "usage"]);
    const stored = (await readdir(folder)).filter((name) => !own.has(name));
    expect(stored).toEqual([]);
  });

  test("a server that stops keeps it as failed", async () => {
    const folder = await mkdtemp(join(tmpdir(), "truewire-background-"));
    folders.push(folder);
    const one = await opened({ store: folder });
    const { id } = await begin(one.url);
    await one.server.close(0);
    const other = await opened({ store: folder });
    expect(await show(other.url, id)).toMatchObject({
      status: "failed",
      error: { code: "server_error", message: "The server stopped before the response was complete." },
    });
  });

  test("another instance shows it, follows it to its end, and stops it", async () => {
    const folder = await mkdtemp(join(tmpdir(), "truewire-background-"));
    folders.push(folder);
    const [one, other] = [await opened({ store: folder }), await opened({ store: folder })];
    const first = await begin(one.url);
    expect(await show(other.url, first.id)).toMatchObject({ status: "in_progress" });
    const following = fetch(`${other.url}/${first.id}?stream=true&starting_after=3`).then((response) =>
      response.text(),
    );
    const second = await begin(one.url);
    const third = await begin(one.url);
    // The instance that generates them looks for that from time to time.
    const [stopped, deleted] = await Promise.all([
      fetch(`${other.url}/${second.id}/cancel`, { method: "POST" }),
      fetch(`${other.url}/${third.id}`, { method: "DELETE" }),
    ]);
    expect(await stopped.json()).toMatchObject({ status: "cancelled" });
    expect(deleted.status).toBe(200);
    expect((await fetch(`${one.url}/${third.id}`)).status).toBe(404);
    one.goOn();
    expect(numbers(await following)[0]).toBe(4);
  });
});

function numbers(sse: string): number[] {
  return [...sse.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number));
}
