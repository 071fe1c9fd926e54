import { brokenBy, concerns, heading, type Report, reportSummary } from "./report.ts";

/** For an issue or a pull request. */
export function markdownReport(report: Report): string {
  const lines = [
    `# ${report.subject}`,
    "",
    `${report.model === undefined ? "" : `Model \`${report.model}\`. `}${reportSummary(report)}.`,
    "",
  ];
  for (const concern of concerns) {
    const rules = brokenBy(report, concern);
    if (rules.length === 0) continue;
    lines.push(`## ${heading(concern)}`, "");
    for (const rule of rules) {
      lines.push(`- **${rule.severity}** \`${rule.id}\`: ${rule.says} (${rule.source})`);
      const [first] = rule.evidence;
      if (first)
        lines.push(
          `  - ${first.in}: ${first.found}${rule.evidence.length > 1 ? `, and ${rule.evidence.length - 1} more` : ""}`,
        );
      if (first?.excerpt?.offending)
        lines.push(
          `  - ${code(first.excerpt.before.slice(-40) + first.excerpt.offending + first.excerpt.after.slice(0, 40))}`,
        );
      if (rule.breaks.length > 0) lines.push(`  - breaks: ${rule.breaks.join(", ")}`);
    }
    lines.push("");
  }
  const silent = report.judgements.filter(({ notShown }) => notShown !== undefined);
  if (silent.length > 0)
    lines.push("## Not shown", "", ...silent.map(({ about, notShown }) => `- ${about}: ${notShown}`), "");
  return lines.join("\n");
}

/** A code span holds any text between fences longer than its own backticks (CommonMark 6.1). */
function code(text: string): string {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map((match) => match[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence} ${text.replaceAll("\r", "␍").replaceAll("\n", "⏎")} ${fence}`;
}
