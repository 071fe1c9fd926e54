import { brokenBy, concerns, type Judgement, type Report, summaryOf } from "./report.ts";

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
`;

function concernSection(report: Report, concern: Report["rules"][number]["concern"]): string {
  const rules = brokenBy(report, concern);
  if (rules.length === 0) return "";
  const items = rules.map((rule) => {
    const places = rule.evidence
      .map(
        (evidence) =>
          `<li><a href="#${anchor(evidence.in)}">${escaped(evidence.in)}</a>: ${escaped(evidence.found)}</li>`,
      )
      .join("");
    const breaks = rule.breaks.length > 0 ? ` · breaks: ${escaped(rule.breaks.join(", "))}` : "";
    return `<div class="rule ${rule.severity}"><span class="id">${rule.severity} ${rule.id}</span> ${escaped(rule.says)}
<div class="facts">${escaped(rule.source)}${breaks}</div><ul>${places}</ul></div>`;
  });
  return `<h2>${escaped(concern)}</h2>${items.join("")}`;
}

function exchangeSection(judgement: Judgement): string {
  const { id, about, exchange, findings } = judgement;
  const request =
    exchange?.request.body === undefined ? "" : `<pre>${escaped(JSON.stringify(exchange.request.body, null, 2))}</pre>`;
  const open = findings.length > 0 ? " open" : "";
  return `<details id="${anchor(id)}"${open}><summary>${escaped(id)}: ${escaped(about)} (status ${exchange?.response.status})</summary>
${request}<pre>${marked(exchange?.response.body ?? "", judgement)}</pre></details>`;
}

/** The body with every offending place marked; places that overlap become one. */
function marked(body: string, { findings }: Judgement): string {
  const places = findings.filter(({ start, end }) => end > start).toSorted((a, b) => a.start - b.start);
  let at = 0;
  let out = "";
  for (const { start, end, rule, found } of places) {
    if (start < at) continue;
    out += `${escaped(body.slice(at, start))}<mark title="${escaped(`${rule}: ${found}`)}">${escaped(body.slice(start, end))}</mark>`;
    at = end;
  }
  return out + escaped(body.slice(at));
}

function anchor(id: string): string {
  return `x-${id.replace(/[^a-z0-9]+/gi, "-")}`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
