import type { FactResult, Finding, Severity } from "./finding.ts";
import { severities } from "./finding.ts";
import type { BetweenRun } from "./run-between.ts";

/** A run, and what is new in it. */
export interface BetweenReport extends BetweenRun {
  /** The gateway's URL. */
  readonly url: string;
  /** The keys of findings that an earlier report has (`--baseline`). */
  readonly known: ReadonlySet<string>;
}

/** How many findings of each severity are new: those that the exit code counts. */
export function newCounts({ findings, known }: BetweenReport): Readonly<Record<Severity, number>> {
  const counts = { error: 0, warning: 0, note: 0 };
  for (const { severity, key } of findings) if (!known.has(key)) counts[severity]++;
  return counts;
}

/** One line that sums a run up. */
export function betweenSummary(report: BetweenReport): string {
  const { results, findings, known, answerMs, client, vendor } = report;
  const passed = results.filter((result) => !["error", "warning"].includes(worstOf(result) ?? "")).length;
  const counts = newCounts(report);
  const old = findings.filter(({ key }) => known.has(key)).length;
  const delay = answerMs === undefined ? "" : `; the first byte comes after ${answerMs.toFixed(0)} ms (median)`;
  return `${client} to ${vendor}: ${passed} of ${results.length} facts arrive; ${counts.error} errors, ${counts.warning} warnings, ${counts.note} notes${old > 0 ? `, ${old} known before` : ""}${delay}`;
}

function worstOf({ findings }: FactResult): Severity | undefined {
  return severities.find((severity) => findings.some((finding) => finding.severity === severity));
}

const sides = ["request", "answer", "transport"] as const;
const headings = { request: "To the vendor", answer: "Back to the client", transport: "On the way" } as const;
const marks: Readonly<Record<Severity, string>> = { error: "✗", warning: "!", note: "·" };

/** For a terminal: the matrix of facts, then each finding with a request that shows it. */
export function prettyBetween(report: BetweenReport): string {
  const lines: string[] = [];
  for (const side of sides) {
    const rows = report.results.filter(({ fact }) => fact.side === side);
    if (rows.length === 0) continue;
    lines.push(headings[side], "");
    for (const row of rows) {
      const worst = worstOf(row);
      lines.push(`  ${worst === undefined ? "✓" : marks[worst]} ${row.fact.title}`);
    }
    lines.push("");
  }
  for (const finding of report.findings) lines.push(...findingLines(finding, report.known.has(finding.key)), "");
  lines.push(betweenSummary(report), "");
  return lines.join("\n");
}

function findingLines({ severity, key, message, facts, curl }: Finding, isKnown: boolean): string[] {
  const shown = curl.length > 1000 ? `${curl.slice(0, 1000)}…` : curl;
  return [
    `${severity}${isKnown ? " (known)" : ""}  ${key}`,
    `  ${message}`,
    `  seen in: ${facts.join(", ")}`,
    ...(severity === "note" ? [] : [`  ${shown}`]),
  ];
}

/** The report for programs. */
export interface BetweenJson extends Pick<BetweenReport, "url" | "client" | "vendor" | "answerMs" | "findings"> {
  readonly summary: string;
  readonly counts: Readonly<Record<Severity, number>>;
  readonly facts: readonly (FactResult["fact"] & { readonly worst: Severity | null })[];
}

export function betweenJson(report: BetweenReport): BetweenJson {
  const { url, client, vendor, results, findings, answerMs } = report;
  const facts = results.map((result) => {
    const { id, title, side } = result.fact;
    return { id, title, side, worst: worstOf(result) ?? null };
  });
  return { url, client, vendor, answerMs, summary: betweenSummary(report), counts: newCounts(report), facts, findings };
}

/** For programs, and as the baseline of later runs. */
export function jsonBetween(report: BetweenReport): string {
  return `${JSON.stringify(betweenJson(report), null, 2)}\n`;
}

/** The keys of the findings in a report of `--format json`. Throws an Error that says what is expected. */
export function baselineOf(text: string): ReadonlySet<string> {
  try {
    const { findings } = JSON.parse(text) as { findings: readonly { key: string }[] };
    return new Set(findings.map(({ key }) => key));
  } catch (cause) {
    throw new Error("expected a report of truewire between --format json", { cause });
  }
}

/** For CI servers: JUnit's XML. A fact is a test case; new errors and warnings fail. */
export function junitBetween({ url, client, vendor, results, findings, known }: BetweenReport): string {
  const isNew = (fact: string): Finding[] =>
    findings.filter(({ facts, key, severity }) => facts.includes(fact) && !known.has(key) && severity !== "note");
  const failures = results.filter(({ fact }) => isNew(fact.id).length > 0).length;
  const cases = results.map(({ fact }) => {
    const open = `  <testcase classname="${headings[fact.side]}" name="${escaped(fact.title)}"`;
    const found = isNew(fact.id);
    if (found.length === 0) return `${open}/>`;
    const text = escaped(found.map(({ key, message }) => `${key}: ${message}`).join("\n"));
    return `${open}><failure type="${found[0]?.severity ?? ""}" message="${escaped(found[0]?.message ?? "")}">${text}</failure></testcase>`;
  });
  const name = escaped(`truewire between ${url}: ${client} to ${vendor}`);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuite name="${name}" tests="${results.length}" failures="${failures}">`,
    ...cases,
    "</testsuite>",
    "",
  ].join("\n");
}

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c1c1e;background:#fff}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.25rem .5rem;border-bottom:1px solid #8884}
.error{color:#a40000}.warning{color:#7a4b00}.note{color:#555}pre{overflow:auto;background:#8881;padding:.5rem;white-space:pre-wrap;overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){body{color:#eee;background:#16161a}.error{color:#ff8f85}.warning{color:#f0b860}.note{color:#aaa}}`;

/** One file for a browser, without scripts and without anything from elsewhere. */
export function htmlBetween(report: BetweenReport): string {
  const title = escaped(`truewire between ${report.url}`);
  const rows = sides.flatMap((side) => {
    const own = report.results.filter(({ fact }) => fact.side === side);
    if (own.length === 0) return [];
    return [
      `<h2>${headings[side]}</h2><table><thead><tr><th>Fact</th><th>Result</th></tr></thead><tbody>`,
      ...own.map((result) => {
        const worst = worstOf(result);
        return `<tr><td>${escaped(result.fact.title)}</td><td class="${worst ?? ""}">${worst ?? "arrives"}</td></tr>`;
      }),
      "</tbody></table>",
    ];
  });
  const found = report.findings.map(
    ({ severity, key, message, facts, curl, clientSide, vendorSide }) =>
      `<details><summary><b class="${severity}">${severity}</b> <code>${escaped(key)}</code>${report.known.has(key) ? " (known)" : ""}<br>${escaped(message)}</summary>` +
      `<p>Seen in: ${escaped(facts.join(", "))}</p><h3>Request</h3><pre>${escaped(curl)}</pre><h3>At the client</h3><pre>${escaped(clientSide.slice(0, 4000))}</pre><h3>At the vendor</h3><pre>${escaped(vendorSide.slice(0, 4000))}</pre></details>`,
  );
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${style}</style></head><body><h1>${title}</h1><p>${escaped(betweenSummary(report))}</p>${rows.join("\n")}<h2>Findings</h2>${found.join("\n") || "<p>None.</p>"}</body></html>\n`;
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replace(/\p{Cc}/gu, (character) => (/\s/.test(character) ? character : "\uFFFD"));
}
