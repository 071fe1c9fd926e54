import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bodyBombs } from "../support/body-bombs.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";

/**
 * A body of 6 MB took 1.3 GB, since zod kept a finding for each of three million wrong messages; one with 1.5 million template
 * variables held the server for 33 seconds. `npm run bench attack` measures them in seconds. What counts here
 * is the CPU time that the server spends between two answers to another client, which other programs on the machine do not change.
 */
const isLinux = process.platform === "linux";
if (!isLinux) console.log("skipped: the CPU time and memory of a process are read from /proc");

describe("bodies that are made to cost", () => {
  let folder: string;
  let server: RunningTruewire;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "truewire-bombs-"));
    const program = join(folder, "hello.mjs");
    writeFileSync(program, 'export default async function* () { yield "Hello"; }');
    server = await startTruewire([`m=${program}`, "--log-level", "silent"]);
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each(bodyBombs)("$name", async ({ make, path, told }) => {
    const { bytes, encoding } = make("m");
    let over = false;
    const worst = isLinux ? worstProbe(server, () => over) : 0;
    const response = await fetch(server.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...(encoding && { "content-encoding": encoding }) },
      body: new Blob([new Uint8Array(bytes)]),
    });
    const text = await response.text();
    over = true;
    expect(await worst).toBeLessThan(2);
    expect(response.status, text).toBe(told ? 400 : 200);
    if (told) expect(text).toMatch(told);
  });

  test.runIf(isLinux)("took no memory to speak of", () => {
    const status = readFileSync(`/proc/${server.process.pid}/status`, "utf8");
    const peak = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
    expect(peak).toBeLessThan(900);
  });
});

/** Asks for `/health` again and again until `done`. Returns the most CPU time that the server spent during one of these requests, in seconds. */
async function worstProbe(server: RunningTruewire, done: () => boolean): Promise<number> {
  let worst = 0;
  while (!done()) {
    const before = cpuSeconds(server.process.pid);
    await (await fetch(`${server.url}/health`)).text();
    worst = Math.max(worst, cpuSeconds(server.process.pid) - before);
    // Each request costs both processes CPU time. A pause hides at most as much of what the server spends.
    await sleep(10);
  }
  return worst;
}

/** The CPU time of a process in user and kernel mode, in seconds: fields 14 and 15 of /proc/PID/stat, in ticks of 10 ms (proc(5)). */
function cpuSeconds(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
