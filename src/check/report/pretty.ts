import pc from "picocolors";
import type { Severity } from "../rules/rule.ts";
import { brokenBy, concerns, type Evidence, heading, type Report, reportSummary } from "./report.ts";

/** Places shown for one rule; the others are counted. */
const placesShown = 2;

const color: Record<Severity, (text: string) => string> = { error: pc.red, warning: pc.yellow, note: pc.cyan };
const sign: Record<Severity, string> = { error: "✗", warning: "!", note: "·" };

/** For a terminal: grouped by what a user would notice, with the offending bytes. */
export function prettyReport(report: Report): string {
  const lines = [pc.bold(report.subject) + (report.model === undefined ? "" : pc.dim(`, model ${report.model}`)), ""];
  for (const concern of concerns) {
    const rules = brokenBy(report, concern);
    if (rules.length === 0) continue;
    lines.push(pc.bold(heading(concern)));
    for (const rule of rules) {
      lines.push(`  ${color[rule.severity](`${sign[rule.severity]} ${rule.id}`)}  ${rule.says}`);
      for (const evidence of rule.evidence.slice(0, placesShown)) lines.push(...place(evidence));
      const more = rule.evidence.length - placesShown;
      if (more > 0) lines.push(pc.dim(`      and in ${more} more ${more === 1 ? "place" : "places"}`));
      if (rule.breaks.length > 0) lines.push(`      breaks: ${rule.breaks.join(", ")}`);
    }
    lines.push("");
  }
  const unseen = report.rules.filter((rule) => rule.status === "not shown").map(({ id }) => id);
  const silent = report.judgements.filter((judgement) => judgement.notShown !== undefined);
  if (silent.length > 0 || isShort(unseen)) {
    lines.push(pc.bold("Not shown"));
    for (const { about, notShown } of silent) lines.push(pc.dim(`  ${about}: ${notShown}`));
    if (isShort(unseen)) lines.push(pc.dim(`  rules: ${unseen.join(", ")}`));
    lines.push("");
  }
  lines.push(reportSummary(report), "");
  return lines.join("\n");
}

/** A whole check leaves few rules unseen, which are worth listing; a capture leaves most. */
function isShort(unseen: readonly string[]): boolean {
  return unseen.length > 0 && unseen.length <= 20;
}

function place({ in: id, found, excerpt }: Evidence): string[] {
  const head = `      ${pc.dim(`${id}:`)} ${found}`;
  if (!excerpt || (excerpt.offending === "" && excerpt.before === "")) return [head];
  const offending = excerpt.offending === "" ? pc.inverse(" ") : pc.inverse(visible(excerpt.offending));
  return [
    head,
    `        ${pc.dim(visible(excerpt.before.slice(-40)))}${offending}${pc.dim(visible(excerpt.after.slice(0, 40)))}`,
  ];
}

function visible(text: string): string {
  return text.replaceAll("\r", "␍").replaceAll("\n", "⏎").replaceAll("\uFEFF", "␀");
}
