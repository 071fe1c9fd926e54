import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { startTruewire } from "../support/serve.ts";
import { event, role, startScripted } from "./scripted-server.ts";

/** How long the upstream pours; the 30 seconds with TRUEWIRE_LONG=1. */
const seconds = process.env.TRUEWIRE_LONG === "1" ? 30 : 8;
const mib = 1024 * 1024;

/** What the process holds in memory, in bytes. Where the system does not tell, the test of what was sent is all. */
function memory(pid: number): number | null {
  try {
    return Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
  } catch {
    return null;
  }
}

test("a fast upstream is held back by a slow client, and memory stays flat", async () => {
  let sent = 0;
  const source = await startScripted((response) => {
    response.write(role);
    const piece = event({ content: "0123456789 ".repeat(50) }).repeat(100);
    const pour = (): void => {
      while (!response.destroyed) {
        sent += piece.length;
        if (!response.write(piece)) {
          response.once("drain", pour);
          return;
        }
      }
    };
    pour();
  });
  // V8 of Node 24 lets a heap grow for long before it collects garbage. With a small heap, growth is what is kept.
  const env = { NODE_OPTIONS: "--max-old-space-size=100" };
  const truewire = await startTruewire(["--log-level", "silent", source.url], { env });
  const pid = truewire.process.pid ?? 0;
  let read = 0;
  const client = request(`${truewire.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
  });
  client.on("error", () => {});
  try {
    client.end(JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "Hi" }] }));
    const [response] = (await once(client, "response")) as [IncomingMessage];
    const ends = Date.now() + seconds * 1000;
    let before: number | null = null;
    // One buffer every 100 ms.
    while (Date.now() < ends) {
      read += (response.read() as Buffer | null)?.length ?? 0;
      await sleep(100);
      if (before === null && Date.now() > ends - (seconds - 2) * 1000) before = memory(pid);
    }
    const after = memory(pid);
    // What is between the two is in sockets and in one batch: not what ten megabytes a second would have piled up.
    expect(sent - read).toBeLessThan(32 * mib);
    expect(read).toBeGreaterThan(100_000);
    if (before !== null && after !== null) expect(after - before).toBeLessThan(64 * mib);
  } finally {
    client.destroy();
    await truewire.stop();
    await source.close();
  }
});
