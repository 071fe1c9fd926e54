import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { jobOfLine, parseLine } from "./foreign-switches.ts";
import type { ParseJob, ParsedText } from "../../src/text/formats/parse-job.ts";

/** A raw text of a model with the message that it must become, from the tests of another server. */
export interface Vector {
  readonly id: string;
  readonly tier: string;
  readonly format: string;
  readonly text: string;
  readonly prefix?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly chunks?: readonly string[];
  readonly expect: { content?: string; reasoning?: string; tool_calls?: { name: string; arguments: unknown }[] };
}

const folder = new URL("../../../shared/vectors/", import.meta.url).pathname;

/** All vectors; none where ../shared is absent. */
export function readVectors(): Vector[] {
  if (!existsSync(folder)) {
    console.log("skipped: no ../shared/vectors to read");
    return [];
  }
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl") && !name.startsWith("_"))
    .flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"))
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Vector);
}

/** What Truewire makes of a vector's text, in these pieces. */
export function readVector(vector: Vector, chunks?: readonly string[]): ParsedText {
  return parseLine({ ...vector, chunks });
}

/** The vector as a job. */
export function jobOf(vector: Vector, chunks?: readonly string[]): ParseJob {
  return jobOfLine({ ...vector, chunks });
}
