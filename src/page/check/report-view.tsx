import { h } from "preact";
import type { TargetedMouseEvent, VNode } from "preact";
import { useMemo } from "preact/hooks";
import { htmlReport } from "../../check/report/html.ts";
import type { HtmlTree } from "../../check/report/html-tree.ts";
import { jsonReport } from "../../check/report/json.ts";
import { reportTree } from "../../check/report/report-tree.ts";
import type { Report } from "../../check/report/report.ts";
import { saveFile } from "../parts/save-file.ts";

/** The report of a check, as `truewire check --format html` writes it. `name`: unlike that of any other report on the page. */
export function ReportView({ report, name }: { readonly report: Report; readonly name: string }): VNode {
  const shown = useMemo(() => reportTree(report, name).map(nodeOf), [report, name]);
  // The address names the view of the page: a link within the report must not change it.
  const follow = (event: TargetedMouseEvent<HTMLElement>): void => {
    const link = event.target instanceof Element ? event.target.closest("a[href^='#']") : null;
    const target = link && document.getElementById(link.getAttribute("href")?.slice(1) ?? "");
    if (!target) return;
    event.preventDefault();
    target.setAttribute("open", "");
    target.scrollIntoView({ block: "start" });
    target.querySelector("summary")?.focus({ preventScroll: true });
  };
  const host = URL.canParse(report.subject) ? new URL(report.subject).host.replace(":", "-") : "server";
  return (
    <section class="report" aria-label={`Report on ${report.subject}`} onClick={follow}>
      <div class="row end">
        <button type="button" onClick={() => saveFile(`check-${host}.html`, "text/html", htmlReport(report))}>
          Save as HTML
        </button>
        <button type="button" onClick={() => saveFile(`check-${host}.json`, "application/json", jsonReport(report))}>
          Save as JSON
        </button>
      </div>
      {shown}
    </section>
  );
}

function nodeOf(tree: HtmlTree): VNode | string {
  return typeof tree === "string" ? tree : h(tree.tag, tree.attributes, ...tree.children.map(nodeOf));
}
