import { execFile } from "node:child_process";
import type { RunCommand } from "./credential.ts";

const timeoutMs = 30_000;
/** A token has some hundred characters; credentials as JSON have some thousand. */
const maxOutput = 64 * 1024;
const maxReason = 300;

/** Runs a command of the configuration. There is no shell, so nothing in it is interpreted. */
export const runCommand: RunCommand = ([program = "", ...args]) =>
  new Promise((resolve, reject) => {
    const options = { timeout: timeoutMs, maxBuffer: maxOutput, windowsHide: true };
    execFile(program, args, options, (error, stdout, stderr) => {
      const output = stdout.trim();
      if (!error && output !== "" && output.length <= maxOutput) return resolve(output);
      const said = stderr.trim().split("\n").at(-1)?.slice(0, maxReason) ?? "";
      reject(
        new Error(`'${program}' ${error ? howItEnded(error) : "printed nothing"}${said === "" ? "." : `: ${said}`}`),
      );
    });
  });

function howItEnded(error: Error & { code?: unknown; killed?: boolean }): string {
  const { code, killed = false } = error;
  if (killed) return `did not end within ${timeoutMs / 1000} seconds`;
  if (code === "ENOENT") return "was not found";
  if (code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER") return `printed more than ${maxOutput} characters`;
  return typeof code === "number" ? `ended with exit code ${code}` : `could not be run (${String(code)})`;
}
