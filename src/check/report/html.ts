import { escaped, htmlOf } from "./html-tree.ts";
import { reportStyle } from "./report-style.ts";
import { reportTree } from "./report-tree.ts";
import type { Report } from "./report.ts";

/** One self-contained file: what the page shows of a check. */
export function htmlReport(report: Report): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>truewire check: ${escaped(report.subject)}</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
${reportStyle}</style>
<main class="report">
<h1>truewire check</h1>
${reportTree(report).map(htmlOf).join("\n")}
</main>
</html>
`;
}
