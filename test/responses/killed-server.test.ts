import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { until } from "../support/scripted-engine.ts";
import { json } from "../support/transports.ts";

/** A program that says one word, and no more. */
const program = `export default async function* () { yield "one"; await new Promise((resolve) => setTimeout(resolve, 600_000)); }`;

describe.skipIf(process.platform !== "linux")("a background response whose server is killed", () => {
  const folders: string[] = [];
  const servers: RunningTruewire[] = [];
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.stop("SIGKILL")));
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  });

  async function opened(folder?: string): Promise<{ server: RunningTruewire; url: string; folder: string }> {
    const at = folder ?? mkdtempSync(join(tmpdir(), "truewire-killed-"));
    if (folder === undefined) folders.push(at);
    writeFileSync(join(at, "program.mjs"), program);
    const server = await startTruewire([join(at, "program.mjs"), "--store", join(at, "store")]);
    servers.push(server);
    return { server, url: `${server.url}/v1/responses`, folder: at };
  }

  async function begun(url: string): Promise<string> {
    const response = await fetch(url, json({ model: "program", input: "x", background: true }));
    const { id } = (await response.json()) as { id: string };
    await until(async () => (await statusOf(url, id)) === "in_progress", "it is in progress");
    return id;
  }

  const statusOf = async (url: string, id: string): Promise<string> =>
    ((await (await fetch(`${url}/${id}`)).json()) as { status: string }).status;
  const events = async (url: string, id: string, query = ""): Promise<string> =>
    (await fetch(`${url}/${id}?stream=true${query}`)).text();
  const cancelled = async (url: string, id: string): Promise<string> =>
    ((await (await fetch(`${url}/${id}/cancel`, { method: "POST" })).json()) as { status: string }).status;

  // The next server took it for running until a minute had passed: `cancel` and the stream hung for that long.
  test("is failed as soon as the next server is asked, which cancels it and ends its stream at once", async () => {
    const first = await opened();
    const id = await begun(first.url);
    await first.server.stop("SIGKILL");
    const { url } = await opened(first.folder);
    expect(await statusOf(url, id)).toBe("failed");
    expect(await cancelled(url, id)).toBe("failed");
    const text = await events(url, id, "&starting_after=3");
    expect(text).toMatch(
      /^event: response\.failed\ndata: \{"type":"response\.failed".*"sequence_number":4\}\n\ndata: \[DONE\]\n\n$/,
    );
    expect(text).toContain("The server stopped before the response was complete.");
    const next = await fetch(url, json({ model: "program", input: "y", previous_response_id: id, background: true }));
    expect(next.status).toBe(200);
  });

  test("is followed to its end by a server that runs beside the one that is killed", async () => {
    const first = await opened();
    const second = await opened(first.folder);
    const id = await begun(first.url);
    const following = events(second.url, id);
    expect(await statusOf(second.url, id)).toBe("in_progress");
    await first.server.stop("SIGKILL");
    expect(await following).toContain("event: response.failed");
    expect(await statusOf(second.url, id)).toBe("failed");
  });

  /** Names another machine as the one that generates a response: nothing is known of its processes. */
  function moveElsewhere(folder: string, id: string): void {
    for (const entry of readdirSync(join(folder, "store"), { withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const file = join(folder, "store", entry.name);
      const text = readFileSync(file, "utf8");
      if (text.startsWith(`{"id":"${id}"`)) writeFileSync(file, text.replace(/"process":"[^"]*"/, '"process":"x 1 1"'));
    }
  }

  test("on another machine is cancelled at once, whether it is known to be dead or not", async () => {
    const first = await opened();
    const id = await begun(first.url);
    await first.server.stop("SIGKILL");
    moveElsewhere(first.folder, id);
    const { url } = await opened(first.folder);
    expect(await statusOf(url, id)).toBe("in_progress");
    expect(await cancelled(url, id)).toBe("cancelled");
    expect(await statusOf(url, id)).toBe("cancelled");
    expect(await cancelled(url, id)).toBe("cancelled");
    expect(await events(url, id)).toBe("data: [DONE]\n\n");
  });

  test("on another machine is deleted at once, and its stream is opened at once", async () => {
    const first = await opened();
    const id = await begun(first.url);
    await first.server.stop("SIGKILL");
    moveElsewhere(first.folder, id);
    const { url } = await opened(first.folder);
    const leaving = new AbortController();
    // Resolves with the headers.
    const followed = await fetch(`${url}/${id}?stream=true`, { signal: leaving.signal });
    expect(followed.headers.get("content-type")).toContain("text/event-stream");
    leaving.abort();
    expect((await fetch(`${url}/${id}`, { method: "DELETE" })).status).toBe(200);
    expect((await fetch(`${url}/${id}`)).status).toBe(404);
  });
});
