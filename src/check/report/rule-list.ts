import { everyRule } from "../rules/every-rule.ts";
import { concerns } from "./report.ts";

/** Every rule explained, in Markdown; `truewire check --list` prints it, and docs/rules.md is it. */
export function ruleList(): string {
  const lines = ["# Rules", "", `${everyRule.length} rules, by what a user would notice when one is broken.`, ""];
  for (const concern of concerns) {
    const rules = everyRule.filter((rule) => rule.concern === concern);
    if (rules.length === 0) continue;
    lines.push(`## ${concern[0]?.toUpperCase()}${concern.slice(1)}`, "");
    lines.push("| rule | | what must hold | who breaks | source |", "| --- | --- | --- | --- | --- |");
    for (const { id, severity, says, breaks, source } of rules) {
      lines.push(`| \`${id}\` | ${severity} | ${cell(says)} | ${cell(breaks.join(", ") || "–")} | ${cell(source)} |`);
    }
    lines.push("");
  }
  return lines.join("\n");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}
