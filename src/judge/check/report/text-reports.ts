import type { RuleOutcome } from "./report.ts";
import { concerns, heading, mistakesBy, type Report, reportSummary, worstOf } from "./report.ts";

/** For programs: the whole report, every rule with its status, and the raw bodies. */
export function jsonReport(report: Report): string {
  const { subject, model, profile, remarks, forms, counts, rules, judgements } = report;
  const exchanges = judgements.map(({ id, about, exchange, notShown }) => ({
    id,
    about,
    ...(exchange && { request: exchange.request, response: exchange.response }),
    ...(notShown !== undefined && { notShown }),
  }));
  return `${JSON.stringify({ subject, model, profile, remarks, forms, counts, rules, exchanges }, null, 2)}\n`;
}

/**
 * For CI servers: JUnit's XML. A rule is a test case; errors and warnings fail, notes pass with a text. Rules that are not shown, or that the
 * mistake of another rule breaks, are skipped.
 */
export function junitReport(report: Report): string {
  const failures = report.counts.error + report.counts.warning;
  const skipped = report.rules.filter(({ status, partOf }) => status === "not shown" || partOf !== undefined).length;
  const attributes = `tests="${report.rules.length}" failures="${failures}" skipped="${skipped}"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuite name="${xmlText(`truewire check ${report.subject}`)}" ${attributes}>`,
    ...report.rules.map(testCase),
    "</testsuite>",
    "",
  ].join("\n");
}

function testCase(rule: RuleOutcome): string {
  const open = `  <testcase classname="${xmlText(rule.concern)}" name="${xmlText(`${rule.id}: ${rule.says}`)}"`;
  if (rule.status === "passed") return `${open}/>`;
  if (rule.status === "not shown") return `${open}><skipped/></testcase>`;
  if (rule.partOf !== undefined) return `${open}><skipped message="the same mistake as ${rule.partOf}"/></testcase>`;
  const places = xmlText(rule.evidence.map((evidence) => `${evidence.in}: ${evidence.found}`).join("\n"));
  if (rule.severity === "note") return `${open}><system-out>${places}</system-out></testcase>`;
  return `${open}><failure type="${rule.severity}" message="${xmlText(rule.evidence[0]?.found ?? "")}">${places}</failure></testcase>`;
}

function xmlText(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replace(/\p{Cc}/gu, (character) => (/\s/.test(character) ? character : "\uFFFD"));
}

/** For an issue or a pull request. */
export function markdownReport(report: Report): string {
  const lines = [
    `# ${report.subject}`,
    "",
    `${report.model === undefined ? "" : `Model \`${report.model}\`. `}${reportSummary(report)}.`,
    "",
  ];
  const worst = worstOf(report);
  if (worst.length > 0)
    lines.push(
      "What matters most:",
      "",
      ...worst.map(({ id, severity, says }) => `- **${severity}** \`${id}\`: ${says}`),
      "",
    );
  for (const concern of concerns) {
    const rules = mistakesBy(report, concern);
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
      const right = rule.evidence.find((evidence) => evidence.right !== undefined)?.right;
      if (right !== undefined) lines.push(`  - right: ${right === "" ? "nothing" : code(right)}`);
      if (rule.breaks.length > 0) lines.push(`  - breaks: ${rule.breaks.join(", ")}`);
      if (rule.others.length > 0) lines.push(`  - breaks also: ${rule.others.map(({ id }) => `\`${id}\``).join(", ")}`);
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
