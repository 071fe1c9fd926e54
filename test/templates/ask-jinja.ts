import { spawnSync } from "node:child_process";

const oracle = "test/templates/jinja-oracle.py";

/** Whether there is a Python here that knows Jinja. */
export const hasJinja: boolean = spawnSync("python3", ["-c", "import jinja2"]).status === 0;

export interface JinjaResult {
  readonly text?: string;
  readonly error?: string;
}

export interface JinjaJobs {
  readonly source: string;
  /** The JSON of the variables of each rendering; `null`: the template is only parsed. */
  readonly jobs: readonly string[];
}

/**
 * Returns what Python's own Jinja makes of the jobs of each template. `python`: an interpreter that has Transformers, which then compiles
 * the templates; default: the system's, with Jinja as Transformers sets it up.
 */
export function askJinja(templates: readonly JinjaJobs[], python?: string): readonly (readonly JinjaResult[])[] {
  const input = templates.map(({ source, jobs }) => `{"source": ${JSON.stringify(source)}, "jobs": [${jobs.join()}]}`);
  const args = python === undefined ? [oracle] : [oracle, "transformers"];
  const { stdout, stderr } = spawnSync(python ?? "python3", args, {
    input: input.join("\n"),
    encoding: "utf8",
    maxBuffer: 1 << 29,
  });
  const lines = stdout.split("\n").filter((line) => line !== "");
  if (lines.length !== templates.length)
    throw new Error(`${oracle} answered ${lines.length} of ${templates.length} lines: ${stderr}`);
  return lines.map((line) => JSON.parse(line) as readonly JinjaResult[]);
}
