import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { closeAfterTest } from "../support/close-after-test.ts";

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "truewire-faults-"));
  folders.push(folder);
  return folder;
}

/** Does this when the test has ended, however it ended. */
export function afterwards(close: () => unknown): void {
  closeAfterTest(close);
}

/** `truewire serve` with these arguments; it ends with the test. */
export async function serve(...[args, options]: Parameters<typeof startTruewire>): Promise<RunningTruewire> {
  const server = await startTruewire(args, options);
  afterwards(() => server.stop("SIGKILL"));
  return server;
}

/** A program, named "program", that says as many words as it is asked for, one every 20 ms; with "wait", it waits long before the last. */
export function writeProgram(folder: string): string {
  const file = join(folder, "program.mjs");
  writeFileSync(
    file,
    `export default async function* ({ messages }) {
      const asked = String(messages.at(-1).content?.at?.(0)?.text ?? messages.at(-1).content);
      const count = parseInt(asked) || 1;
      for (let word = 0; word < count; word++) {
        yield "word ";
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }`,
  );
  return file;
}

/** A file system of so many bytes in a folder; it goes with the test. */
export function mountSmallDisk(folder: string, bytes: number): void {
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${bytes}`, "none", folder]);
  afterwards(() => execFileSync("umount", ["--lazy", folder]));
}

/** Whether this process may mount file systems. */
export const canMount: boolean = tryMount();

function tryMount(): boolean {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return false;
  const folder = mkdtempSync(join(tmpdir(), "truewire-mount-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "none", folder], { stdio: "ignore" });
    execFileSync("umount", [folder]);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A chat with a model. */
export function ask(
  url: string,
  model: string,
  content: string,
  more: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model, messages: [{ role: "user", content }], ...more }),
  });
}
