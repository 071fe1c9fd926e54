import { readFileSync } from "node:fs";

/** The limit of open files of this process; undefined if it is unlimited or cannot be determined. */
export function descriptorLimit(): number | undefined {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"));
    return soft ? Number(soft[1]) : undefined;
  } catch {
    return reportedDescriptorLimit();
  }
}

/** Node's diagnostic report has the limit on all systems except Windows, but is slow. */
function reportedDescriptorLimit(): number | undefined {
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  const soft = report.userLimits?.open_files?.soft;
  return typeof soft === "number" ? soft : undefined;
}
