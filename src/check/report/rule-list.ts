import { everyRule } from "../rules/every-rule.ts";
import { concerns, heading } from "./report.ts";

const sources = [
  "Their sources: OpenAI's specification and other standards; recordings of api.openai.com (4,650 exchanges from 2023-04 to 2026-08 in the",
  "tests of public projects; `n of m` says how many bear a rule out); issues of trackers, by project and number.",
];

/** Every rule explained, in Markdown; `truewire check --list` prints it, and docs/rules.md is it. */
export function ruleList(): string {
  const lines = [
    "# Rules",
    "",
    `${everyRule.length} rules, by what a user would notice when one is broken.`,
    "",
    ...sources,
    "",
  ];
  for (const concern of concerns) {
    const rules = everyRule.filter((rule) => rule.concern === concern);
    if (rules.length === 0) continue;
    lines.push(`## ${heading(concern)}`, "");
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
