import { spawnSync } from "node:child_process";

const oracle = new URL("jinja-oracle.py", import.meta.url);

/** Whether there is a Python here that knows Jinja. */
export const hasJinja: boolean = spawnSync("python3", ["-c", "import jinja2"]).status === 0;

export interface JinjaJob {
  readonly source: string;
  /** Absent: the template is only parsed. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

export interface JinjaResult {
  readonly text?: string;
  readonly error?: string;
}

/** What Python's own Jinja makes of each job. */
export function askJinja(jobs: readonly JinjaJob[]): readonly JinjaResult[] {
  const { stdout } = spawnSync("python3", [oracle.pathname], {
    input: jobs.map((job) => JSON.stringify(job)).join("\n"),
    encoding: "utf8",
    maxBuffer: 1 << 29,
  });
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as JinjaResult);
}
