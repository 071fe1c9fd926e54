import pc from "picocolors";
import type { Severity } from "../rules/rule.ts";
import { concerns, type Evidence, heading, mistakesBy, type Report, reportSummary, worstOf } from "./report.ts";
import { everyRule } from "../rules/every-rule.ts";

/** Places shown for one rule; the others are counted. */
const placesShown = 2;

const color: Record<Severity, (text: string) => string> = { error: pc.red, warning: pc.yellow, note: pc.cyan };
const sign: Record<Severity, string> = { error: "✗", warning: "!", note: "·" };

/** For a terminal: grouped by what a user would notice, with the offending bytes. */
export function prettyReport(report: Report): string {
  const lines = [pc.bold(report.subject) + (report.model === undefined ? "" : pc.dim(`, model ${report.model}`)), ""];
  lines.push(reportSummary(report), "");
  const worst = worstOf(report);
  if (worst.length > 0) {
    lines.push(pc.bold("What matters most"));
    for (const { id, severity, says, breaks } of worst) {
      const clients = breaks.length === 0 ? "" : pc.dim(` (breaks ${breaks[0]}${breaks.length > 1 ? ", …" : ""})`);
      lines.push(`  ${color[severity](`${sign[severity]} ${id}`)}  ${says}${clients}`);
    }
    lines.push("");
  }
  for (const concern of concerns) {
    const mistakes = mistakesBy(report, concern);
    if (mistakes.length === 0) continue;
    lines.push(pc.bold(heading(concern)));
    for (const rule of mistakes) {
      lines.push(`  ${color[rule.severity](`${sign[rule.severity]} ${rule.id}`)}  ${rule.says}`);
      for (const evidence of rule.evidence.slice(0, placesShown)) lines.push(...place(evidence));
      const more = rule.evidence.length - placesShown;
      if (more > 0) lines.push(pc.dim(`      and in ${more} more ${more === 1 ? "place" : "places"}`));
      const right = rule.evidence.find((evidence) => evidence.right !== undefined)?.right;
      if (right !== undefined)
        lines.push(`      ${pc.green("right:")} ${right === "" ? "nothing" : shortened(visible(right))}`);
      if (rule.breaks.length > 0) lines.push(`      breaks: ${rule.breaks.join(", ")}`);
      if (rule.others.length > 0) lines.push(`      breaks also: ${rule.others.map(({ id }) => id).join(", ")}`);
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

/** Maximum length of the right bytes, in characters; the page and the HTML report show all. */
const rightLength = 400;

function shortened(text: string): string {
  return text.length > rightLength ? `${text.slice(0, rightLength)}…` : text;
}

function visible(text: string): string {
  return text.replaceAll("\r", "␍").replaceAll("\n", "⏎").replaceAll("\uFEFF", "␀");
}

const sources = [
  "Sources: OpenAI's specification (its OpenAPI document) and documentation (developers.openai.com, by page), and other standards; recordings",
  "of api.openai.com (4,650 exchanges of 2023-04 to 2026-08, and 650 of its Responses API of 2026, from the tests of public projects; `n of m`",
  "is how many of them follow the rule); issues and pull requests on GitHub, by project and number. For the Messages API (`messages/…`): Anthropic's documentation (platform.claude.com,",
  "by page), the types of its SDK 0.120.0, and recordings of api.anthropic.com (970 exchanges of 2024-04 to 2026-08). For Gemini's API",
  "(`gemini/…`): Google's documentation (ai.google.dev, by page) and the recordings of crmne/ruby_llm and simonw/llm-gemini. An `error` violates",
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
