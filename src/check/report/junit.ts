import type { Report, RuleOutcome } from "./report.ts";

/** For CI servers: JUnit's XML. A rule is a test case; errors and warnings fail, notes pass with a text, "not shown" is skipped. */
export function junitReport(report: Report): string {
  const failures = report.counts.error + report.counts.warning;
  const attributes = `tests="${report.rules.length}" failures="${failures}" skipped="${report.counts["not shown"]}"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuite name="${escaped(`truewire check ${report.subject}`)}" ${attributes}>`,
    ...report.rules.map(testCase),
    "</testsuite>",
    "",
  ].join("\n");
}

function testCase(rule: RuleOutcome): string {
  const open = `  <testcase classname="${escaped(rule.concern)}" name="${escaped(`${rule.id}: ${rule.says}`)}"`;
  if (rule.status === "passed") return `${open}/>`;
  if (rule.status === "not shown") return `${open}><skipped/></testcase>`;
  const places = escaped(rule.evidence.map((evidence) => `${evidence.in}: ${evidence.found}`).join("\n"));
  if (rule.severity === "note") return `${open}><system-out>${places}</system-out></testcase>`;
  return `${open}><failure type="${rule.severity}" message="${escaped(rule.evidence[0]?.found ?? "")}">${places}</failure></testcase>`;
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replace(/\p{Cc}/gu, (character) => (/\s/.test(character) ? character : "\uFFFD"));
}
