import { readFileSync } from "node:fs";

/** The process's limit of open files; undefined where there is none, or it cannot be read. */
export function descriptorLimit(): number | undefined {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"));
    return soft ? Number(soft[1]) : undefined;
  } catch {
    return reportedDescriptorLimit();
  }
}

/** Node's own report knows it on other systems than Linux (not on Windows), but takes its time. */
function reportedDescriptorLimit(): number | undefined {
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  const soft = report.userLimits?.open_files?.soft;
  return typeof soft === "number" ? soft : undefined;
}
