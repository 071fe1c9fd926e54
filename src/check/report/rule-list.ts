import { everyRule } from "../rules/every-rule.ts";
import { concerns, heading } from "./report.ts";

const sources = [
  "Sources: OpenAI's specification (its OpenAPI document) and documentation (developers.openai.com, by page), and other standards; recordings",
  "of api.openai.com (4,650 exchanges of 2023-04 to 2026-08, and 650 of its Responses API of 2026, from the tests of public projects; `n of m`",
  "is how many of them follow the rule); issues and pull requests on GitHub, by project and number. For the Messages API (`messages/…`): Anthropic's documentation (platform.claude.com,",
  "by page), the types of its SDK 0.120.0, and recordings of api.anthropic.com (970 exchanges of 2024-04 to 2026-08). An `error` violates",
  "the specification or breaks an official client; a `warning` breaks other clients; a `note` is a difference from the vendor that breaks no",
  "known client.",
];

/** Every rule, in Markdown. `truewire check --list` prints it; docs/rules.md contains it. */
export function ruleList(): string {
  const lines = [
    "# Rules",
    "",
    `${everyRule.length} rules, grouped by what a user would notice when one is broken.`,
    "",
    ...sources,
    "",
  ];
  for (const concern of concerns) {
    const rules = everyRule.filter((rule) => rule.concern === concern);
    if (rules.length === 0) continue;
    lines.push(`## ${heading(concern)}`, "");
    lines.push("| rule | severity | what must hold | who breaks | source |", "| --- | --- | --- | --- | --- |");
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
