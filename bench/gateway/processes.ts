import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Job, Outcome } from "./client.ts";

const children: ChildProcess[] = [];

/** Ends what the functions of this file have started. */
export function killProcesses(): void {
  for (const child of children) child.kill();
}

// Also where a process failed to start: what is left running holds the terminal's pipe open.
process.on("exit", killProcesses);

/** Starts a program of this folder that prints its address first. */
export async function startProcess(file: string, ...args: string[]): Promise<{ url: string; pid: number }> {
  const child = spawn(process.execPath, [new URL(file, import.meta.url).pathname, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return { url: line, pid: child.pid ?? 0 };
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
