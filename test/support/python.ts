import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { waitMs } from "./hang.ts";

/**
 * A Python that has the package: the one in .cache/python, which .ci/run makes where it can, else the system's. undefined, and one line
 * that says so, where there is none.
 */
export function pythonWith(name: string): string | undefined {
  const found = [".cache/python/bin/python", "python3"].find((command) => {
    try {
      if (command.includes("/") && !existsSync(command)) return false;
      execFileSync(command, ["-c", `import ${name}`], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  });
  if (found === undefined) console.log(`skipped: Python has no package ${name} (pip install ${name})`);
  return found;
}

/** Runs a script; what it prints is JSON. */
export async function runPython(python: string, script: string, baseURL: string): Promise<unknown> {
  const { stdout } = await promisify(execFile)(python, ["-c", script], {
    env: { ...process.env, BASE_URL: baseURL },
    timeout: waitMs,
  });
  return JSON.parse(stdout) as unknown;
}
