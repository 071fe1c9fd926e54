import { readFileSync } from "node:fs";

/** The processes that this one has started (Linux). */
export function childrenOf(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children === "" ? [] : children.split(" ").map(Number);
}

/** How much memory a process has, and has had at most, in MiB (Linux); 0: it is gone. */
export function memoryOf(pid: number): { readonly now: number; readonly peak: number } {
  let status = "";
  try {
    status = readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    // It is gone.
  }
  const mebibytes = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0) / 1024;
  return { now: mebibytes("VmRSS"), peak: mebibytes("VmHWM") };
}
