import type { Concern, Finding } from "../rules/rule.ts";
import {
  concerns,
  type Evidence,
  heading,
  type Judgement,
  mistakesBy,
  type Report,
  reportSummary,
  worstOf,
} from "./report.ts";

/**
 * A report as `--format html` and the page show it: the findings, and under each the raw bytes of its exchange with the offending ones
 * marked. `name`: what the ids of its parts begin with, one for each report of a document.
 */
export function reportTree(report: Report, name = "x"): HtmlTree[] {
  const { subject, model, judgements } = report;
  return [
    element("h2", { class: "subject" }, `${subject}${model === undefined ? "" : `, model ${model}`}`),
    element("p", { class: "verdict" }, reportSummary(report)),
    ...worstSection(report),
    ...concerns.flatMap((concern) => concernSection(report, concern, name)),
    ...silentSection(report),
    ruleList(report, "passed"),
    ruleList(report, "not shown"),
    element("h3", {}, "What was sent and what came back"),
    ...judgements.flatMap((judgement) => exchangeSection(judgement, name)),
  ];
}

/** The id of what a judgement's evidence points at. */
function idOf(name: string, judgement: string): string {
  return `${name}-${judgement.replace(/[^a-z0-9]+/gi, "-")}`;
}

/** Places of a rule that are not folded away. */
const placesOpen = 5;

/** The mistakes that matter most, in one line each. */
function worstSection(report: Report): HtmlElement[] {
  const items = worstOf(report).map(({ id, severity, says, breaks }) =>
    element(
      "li",
      { class: `rule ${severity}` },
      element("span", { class: "id" }, `${severity} ${id}`),
      ` ${says}${breaks.length > 0 ? ` Breaks ${breaks[0]}.` : ""}`,
    ),
  );
  return items.length === 0 ? [] : [element("h3", {}, "What matters most"), element("ol", { class: "worst" }, items)];
}

function concernSection(report: Report, concern: Concern, name: string): HtmlElement[] {
  const mistakes = mistakesBy(report, concern);
  if (mistakes.length === 0) return [];
  const items = mistakes.map(({ id, severity, says, source, breaks, evidence, others }) => {
    const rest = evidence.slice(placesOpen);
    const right = evidence.find((place) => place.right !== undefined)?.right;
    const also = others.map((other) => other.id).join(", ");
    return element(
      "div",
      { class: `rule ${severity}` },
      element("span", { class: "id" }, `${severity} ${id}`),
      ` ${says}`,
      element("div", { class: "facts" }, `${source}${breaks.length > 0 ? ` · breaks: ${breaks.join(", ")}` : ""}`),
      also === "" ? [] : element("div", { class: "facts" }, `The same mistake breaks ${also}.`),
      placeList(evidence.slice(0, placesOpen), name),
      right === undefined ? [] : rightBytes(id, right),
      rest.length === 0
        ? []
        : [element("details", {}, element("summary", {}, `${rest.length} more`), placeList(rest, name))],
    );
  });
  return [element("h3", {}, heading(concern)), ...items];
}

/** What Truewire sends in that place. */
function rightBytes(rule: string, right: string): HtmlElement {
  const bytes = right === "" ? element("p", { class: "facts" }, "Nothing.") : pre(`Right bytes for ${rule}`, {}, right);
  return element("details", {}, element("summary", {}, "The right bytes"), bytes);
}

function placeList(places: readonly Evidence[], name: string): HtmlElement {
  const items = places.map(({ in: id, found, excerpt }) => {
    const link = element("a", { href: `#${idOf(name, id)}` }, id);
    if (excerpt === undefined || excerpt.offending === "") return element("li", {}, link, `: ${found}`);
    const { before, offending, after } = excerpt;
    const code = element("code", {}, before.slice(-40), element("mark", {}, offending), after.slice(0, 40));
    return element("li", {}, link, `: ${found} `, code);
  });
  return element("ul", {}, items);
}

/** Probes that showed nothing about their subject. */
function silentSection({ judgements }: Report): HtmlElement[] {
  const silent = judgements.flatMap(({ about, notShown }) =>
    notShown === undefined ? [] : [element("li", {}, `${about}: ${notShown}`)],
  );
  return silent.length === 0 ? [] : [element("h3", {}, "Not shown"), element("ul", {}, silent)];
}

function ruleList({ rules }: Report, status: "passed" | "not shown"): HtmlElement {
  const listed = rules.filter((rule) => rule.status === status);
  const items = listed.map(({ id, says }) => element("li", {}, element("span", { class: "id" }, id), ` ${says}`));
  return element(
    "details",
    {},
    element("summary", {}, `${listed.length} rules ${status}`),
    items.length === 0 ? [] : [element("ul", {}, items)],
  );
}

function exchangeSection({ id, about, exchange, findings }: Judgement, name: string): HtmlElement[] {
  if (!exchange) return [];
  const { request, response } = exchange;
  const headers = Object.entries(response.headers ?? {}).map(([field, value]) => `${field}: ${value}\n`);
  const asked = request.body === undefined ? [] : [pre(`What ${id} sent`, {}, JSON.stringify(request.body, null, 2))];
  const head = headers.length === 0 ? [] : [pre(`Headers of ${id}`, { class: "facts" }, headers.join(""))];
  return [
    element(
      "details",
      { id: idOf(name, id), ...(findings.length > 0 && { open: true as const }) },
      element("summary", {}, `${id}: ${about} (status ${response.status})`),
      asked,
      head,
      pre(`Body of ${id}`, {}, ...marked(response.body, findings)),
    ),
  ];
}

/** Text that may be longer than its box: who has no pointer scrolls it when it has the focus. */
function pre(label: string, attributes: HtmlElement["attributes"], ...children: readonly HtmlTree[]): HtmlElement {
  return element("pre", { ...attributes, tabindex: "0", role: "group", "aria-label": label }, ...children);
}

/** The body with every offending place marked; places that overlap become one, and where something is missing there is a sign. */
function marked(body: string, findings: readonly Finding[]): HtmlTree[] {
  let at = 0;
  const out: HtmlTree[] = [];
  for (const { start, end, titles } of placesOf(findings)) {
    const text = end > start ? body.slice(start, end) : "▮";
    out.push(body.slice(at, start), element("mark", { title: titles.join("\n") }, text));
    at = end;
  }
  return [...out, body.slice(at)];
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

/** HTML as data: text or an element. `htmlOf` writes it as text; the page creates nodes from it. */
export type HtmlTree = string | HtmlElement;

interface HtmlElement {
  readonly tag: string;
  /** `true`: an attribute without a value. */
  readonly attributes: Readonly<Record<string, string | true>>;
  readonly children: readonly HtmlTree[];
}

type Children = readonly (HtmlTree | readonly HtmlTree[])[];

function element(tag: string, attributes: HtmlElement["attributes"], ...children: Children): HtmlElement {
  return { tag, attributes, children: children.flat() };
}

/** The HTML of a tree; no text in it is taken for markup. */
function htmlOf(tree: HtmlTree): string {
  if (typeof tree === "string") return escaped(tree);
  const { tag, attributes, children } = tree;
  const written = Object.entries(attributes).map(([name, value]) =>
    value === true ? ` ${name}` : ` ${name}="${escaped(value)}"`,
  );
  return `<${tag}${written.join("")}>${children.map(htmlOf).join("")}</${tag}>`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** How a report looks, in the file of `--format html` and in the page, whose colours it takes where there are such. */
export const reportStyle = `
.report { --of-error: var(--wrong, light-dark(#b3261e, #f2938c)); --of-warning: var(--warning, light-dark(#7a5200, #e0b050)); --of-note: var(--note, light-dark(#1f5f99, #8abbe8)); --of-line: var(--line, light-dark(#8886, #8886)); min-width: 0; overflow-wrap: anywhere; }
.report h2 { font-size: 1.15rem; } .report h3 { font-size: 1rem; margin: 1.6rem 0 .4rem; border-bottom: 1px solid var(--of-line); }
.report .rule { margin: .8rem 0; } .report .id { font-family: ui-monospace, monospace; font-size: .9em; font-weight: 600; }
.report .error .id { color: var(--of-error); } .report .warning .id { color: var(--of-warning); } .report .note .id { color: var(--of-note); }
.report .facts { font-size: .85em; color: var(--dim, light-dark(#555, #aaa)); }
.report a { color: inherit; } .report ul { list-style: disc; margin: .3rem 0; padding-left: 1.2rem; }
.report pre { overflow: auto; max-height: 30rem; margin: .4rem 0; padding: .6rem; border: 1px solid var(--of-line); white-space: pre-wrap; font-size: .8rem; }
.report mark { background: light-dark(#ffd9d6, #5c1f1b); color: inherit; outline: 1px solid var(--of-error); }
.report summary { cursor: pointer; padding: .15rem 0; min-height: 24px; }
.report details { content-visibility: auto; contain-intrinsic-size: auto 1.8rem; }
.report li code { font-size: .8em; }
`;

/** One self-contained file: what the page shows of a check. */
export function htmlReport(report: Report): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>truewire check: ${escaped(report.subject)}</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
${reportStyle}</style>
<main class="report">
<h1>truewire check</h1>
${reportTree(report).map(htmlOf).join("\n")}
</main>
</html>
`;
}
