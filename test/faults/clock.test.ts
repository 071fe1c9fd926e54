import { createHash } from "node:crypto";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../support/scripted-engine.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { fault } from "./fault.ts";
import { outcome } from "./outcome.ts";
import { ask, newFolder, serve, writeProgram } from "./support.ts";

const faketime = findFaketime();

/** The library that shows a process another time (Debian's package faketime). */
function findFaketime(): string | undefined {
  const folders =
    process.platform === "linux" ? readdirSync("/usr/lib").map((name) => `/usr/lib/${name}/faketime`) : [];
  return folders.map((folder) => join(folder, "libfaketimeMT.so.1")).find((file) => existsSync(file));
}

const key = "tw-key-of-alice-0123456789";
const headers = { authorization: `Bearer ${key}` };

interface Clocked extends RunningTruewire {
  /** Sets the server's clock, to so many milliseconds before or after the true time. */
  setClock(offsetMs: number): void;
}

/** A server with one key, whose clock can be set; clocks that measure how long something took go on as they are. */
async function serveWithClock(limits: string, offsetMs: number): Promise<Clocked> {
  const folder = newFolder();
  const [keys, clock] = [join(folder, "keys.yaml"), join(folder, "clock")];
  writeFileSync(
    keys,
    `- { name: alice, hash: "sha256:${createHash("sha256").update(key).digest("hex")}", ${limits} }\n`,
  );
  const setClock = (ms: number): void => writeFileSync(clock, `${ms < 0 ? "-" : "+"}${Math.abs(ms / 1000)}\n`);
  setClock(offsetMs);
  const env = {
    LD_PRELOAD: faketime ?? "",
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
    DONT_FAKE_MONOTONIC: "1",
  };
  return { ...(await serve([writeProgram(folder), "--keys-file", keys], { env })), setClock };
}

const say = (server: RunningTruewire, count: number, more: object = {}): Promise<Response> =>
  ask(server.url, "program", String(count), { ...more }, headers);

const hour = 3_600_000;

fault(
  "the clock jumps by a day, and back, while streams run",
  async () => {
    const server = await serveWithClock("requestsPerMinute: 3", 0);
    const running = await say(server, 100, { stream: true });
    server.setClock(24 * hour);
    const third = await outcome(say(server, 1));
    server.setClock(-24 * hour);
    const fourth = await outcome(say(server, 1));
    const beyond = await outcome(say(server, 1));
    return {
      clients: [
        `running streams ${await outcome(Promise.resolve(running))}`,
        `new requests ${third}, ${fourth}`,
        `beyond a minute's limit ${beyond}`,
      ],
      log: server.stderr,
    };
  },
  faketime !== undefined,
);

fault(
  "a key expires in the middle of its stream",
  async () => {
    const expires = new Date(Date.now() + hour).toISOString();
    const server = await serveWithClock(`expires: "${expires}"`, 0);
    const running = await say(server, 60, { stream: true });
    server.setClock(2 * hour);
    return {
      clients: [
        `the running stream ${await outcome(Promise.resolve(running))}`,
        `the next request ${await outcome(say(server, 1))}`,
      ],
      log: server.stderr,
    };
  },
  faketime !== undefined,
);

fault(
  "the budget of a day is spent, and then it is midnight in UTC",
  async () => {
    const now = new Date();
    const midnight = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1);
    const server = await serveWithClock("tokensPerDay: 5", midnight - hour - Date.now());
    const statuses: string[] = [];
    await until(async () => {
      statuses.push(await outcome(say(server, 3)));
      return statuses.at(-1) !== "200";
    }, "it is spent");
    server.setClock(midnight + 1000 - Date.now());
    await until(async () => (await outcome(say(server, 3))) === "200", "it is there again");
    return { clients: [`before midnight ${statuses.at(-1)}`, "after it 200"], log: server.stderr };
  },
  faketime !== undefined,
);
