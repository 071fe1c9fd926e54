import type { Finding } from "../rules/rule.ts";
import { brokenBy, concerns, type Evidence, heading, type Judgement, type Report, summaryOf } from "./report.ts";

/** One self-contained file: the findings, and under each the raw bytes of its exchange with the offending ones marked. */
export function htmlReport(report: Report): string {
  const sections = concerns.map((concern) => concernSection(report, concern)).join("");
  const exchanges = report.judgements
    .filter((judgement) => judgement.exchange)
    .map(exchangeSection)
    .join("");
  const model = report.model === undefined ? "" : `, model ${escaped(report.model)}`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>truewire check: ${escaped(report.subject)}</title>
<style>${style}</style>
<h1>${escaped(report.subject)}${model}</h1>
<p>${escaped(summaryOf(report))}</p>
${sections}
${silentSection(report)}
${rulesSection(report, "passed")}
${rulesSection(report, "not shown")}
<h2>What was sent and what came back</h2>
${exchanges}
</html>
`;
}

const style = `
:root { color-scheme: light dark; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; border-bottom: 1px solid var(--line); }
.rule { margin: .8rem 0; } .id { font-family: ui-monospace, monospace; }
.error .id { color: #d33; } .warning .id { color: #b80; } .note .id { color: #38a; }
.facts { opacity: .75; font-size: .9em; }
pre { overflow: auto; max-height: 30rem; padding: .6rem; border: 1px solid var(--line); white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85em; }
mark { background: #e335; color: inherit; outline: 1px solid #e33; }
details > summary { cursor: pointer; }
li code { font-size: .8em; opacity: .9; overflow-wrap: anywhere; }
`;

function concernSection(report: Report, concern: Report["rules"][number]["concern"]): string {
  const rules = brokenBy(report, concern);
  if (rules.length === 0) return "";
  const items = rules.map((rule) => {
    const [first, rest] = [rule.evidence.slice(0, placesOpen), rule.evidence.slice(placesOpen)];
    const more = rest.length === 0 ? "" : `<details><summary>${rest.length} more</summary>${placeList(rest)}</details>`;
    const breaks = rule.breaks.length > 0 ? ` · breaks: ${escaped(rule.breaks.join(", "))}` : "";
    return `<div class="rule ${rule.severity}"><span class="id">${rule.severity} ${rule.id}</span> ${escaped(rule.says)}
<div class="facts">${escaped(rule.source)}${breaks}</div>${placeList(first)}${more}</div>`;
  });
  return `<h2>${heading(concern)}</h2>${items.join("")}`;
}

/** Places of a rule that are not folded away. */
const placesOpen = 5;

function placeList(places: readonly Evidence[]): string {
  const items = places.map(({ in: id, found, excerpt }) => {
    const shown =
      excerpt === undefined || excerpt.offending === ""
        ? ""
        : ` <code>${escaped(excerpt.before.slice(-40))}<mark>${escaped(excerpt.offending)}</mark>${escaped(excerpt.after.slice(0, 40))}</code>`;
    return `<li><a href="#${anchor(id)}">${escaped(id)}</a>: ${escaped(found)}${shown}</li>`;
  });
  return `<ul>${items.join("")}</ul>`;
}

/** Probes that showed nothing about their subject. */
function silentSection({ judgements }: Report): string {
  const silent = judgements.filter(({ notShown }) => notShown !== undefined);
  if (silent.length === 0) return "";
  const items = silent.map(({ about, notShown }) => `<li>${escaped(about)}: ${escaped(notShown ?? "")}</li>`);
  return `<h2>Not shown</h2><ul>${items.join("")}</ul>`;
}

function rulesSection({ rules }: Report, status: "passed" | "not shown"): string {
  const listed = rules.filter((rule) => rule.status === status);
  const items = listed.map(({ id, says }) => `<li><span class="id">${id}</span> ${escaped(says)}</li>`);
  return `<details><summary>${listed.length} rules ${status}</summary><ul>${items.join("")}</ul></details>`;
}

function exchangeSection(judgement: Judgement): string {
  const { id, about, exchange, findings } = judgement;
  if (!exchange) return "";
  const { request, response } = exchange;
  const body = request.body === undefined ? "" : `<pre>${escaped(JSON.stringify(request.body, null, 2))}</pre>`;
  const headers = Object.entries(response.headers ?? {}).map(([name, value]) => `${name}: ${value}\n`);
  const head = headers.length === 0 ? "" : `<pre class="facts">${escaped(headers.join(""))}</pre>`;
  const open = findings.length > 0 ? " open" : "";
  return `<details id="${anchor(id)}"${open}><summary>${escaped(id)}: ${escaped(about)} (status ${response.status})</summary>
${body}${head}<pre>${marked(response.body, findings)}</pre></details>`;
}

/** The body with every offending place marked; places that overlap become one, and where something is missing there is a sign. */
function marked(body: string, findings: readonly Finding[]): string {
  let at = 0;
  let out = "";
  for (const { start, end, titles } of placesOf(findings)) {
    const text = end > start ? escaped(body.slice(start, end)) : "▮";
    out += `${escaped(body.slice(at, start))}<mark title="${escaped(titles.join("\n"))}">${text}</mark>`;
    at = end;
  }
  return out + escaped(body.slice(at));
}

interface Place {
  readonly start: number;
  end: number;
  readonly titles: string[];
}

function placesOf(findings: readonly Finding[]): readonly Place[] {
  const places: Place[] = [];
  for (const { start, end, rule, found } of findings.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    const last = places.at(-1);
    const title = `${rule}: ${found}`;
    if (last && (start < last.end || (start === last.start && end === last.end))) {
      last.end = Math.max(last.end, end);
      last.titles.push(title);
    } else places.push({ start, end, titles: [title] });
  }
  return places;
}

function anchor(id: string): string {
  return `x-${id.replace(/[^a-z0-9]+/gi, "-")}`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
