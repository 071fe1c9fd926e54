import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import type { Job, Outcome } from "./client.ts";
import { freePort } from "../../test/support/redis-server.ts";

const children: ChildProcess[] = [];

/** Ends what the functions of this file have started. */
export function killProcesses(): void {
  for (const child of children) child.kill();
}

// Also where a process failed to start: what is left running holds the terminal's pipe open.
process.on("exit", killProcesses);

interface Gateway {
  /** The API's base URL. */
  readonly url: string;
  readonly pid: number;
  stop(): void;
}

/** Starts a program of this folder that prints its address first. */
export async function startProcess(file: string, ...args: string[]): Promise<Gateway> {
  const child = spawn(process.execPath, [new URL(file, import.meta.url).pathname, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [url] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return { url, pid: child.pid ?? 0, stop: () => void child.kill() };
}

/** Starts nginx with one worker in front of the upstream's base URL. Gives undefined where nginx is not installed. */
export async function startNginx(upstream: string): Promise<Gateway | undefined> {
  if (spawnSync("nginx", ["-v"]).error) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "truewire-bench-nginx-"));
  const port = await freePort();
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (use) => `${use}_temp_path ${folder}/${use};`,
  );
  writeFileSync(
    join(folder, "nginx.conf"),
    `daemon off; worker_processes 1; worker_rlimit_nofile 20000; pid ${folder}/pid; error_log stderr crit;
events { worker_connections 9000; }
http {
  access_log off; keepalive_requests 1000000000; ${temporary.join(" ")}
  upstream bench { server ${new URL(upstream).host}; keepalive 512; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} backlog=8192;
    location / { proxy_pass http://bench; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }
  }
}
`,
  );
  const child = spawn("nginx", ["-p", folder, "-e", "stderr", "-c", join(folder, "nginx.conf")], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  children.push(child);
  const url = `http://127.0.0.1:${port}/v1`;
  const answers = (): Promise<boolean> =>
    fetch(`${url}/models`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await answers())) {
    if (child.exitCode !== null) throw new Error(`nginx exited with ${child.exitCode}`);
    await setTimeout(20);
  }
  return { url, pid: child.pid ?? 0, stop: () => void child.kill() };
}

/** Starts a process of clients; the function that it gives runs a job there. */
export function startClients(): (job: Job) => Promise<Outcome> {
  const client = spawn(process.execPath, [new URL("client.js", import.meta.url).pathname], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  children.push(client);
  const answers = createInterface({ input: client.stdout })[Symbol.asyncIterator]();
  return async (job) => {
    client.stdin.write(`${JSON.stringify(job)}\n`);
    const { value } = await answers.next();
    return JSON.parse(value as string) as Outcome;
  };
}
