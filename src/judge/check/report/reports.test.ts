import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { judgeCapture } from "../check-capture.ts";
import type { Exchange } from "../rules/exchange.ts";
import type { Finding } from "../rules/rule.ts";
import { htmlReport } from "./report-tree.ts";
import { prettyReport } from "./terminal.ts";
import { jsonReport, junitReport, markdownReport } from "./text-reports.ts";
import type { Report } from "./report.ts";
import { reportOf } from "./report-of.ts";

const hostile = `data: {"id":"</pre><script>alert(1)</script>","object":"x"}\r\n\r\n`;

function reportOfBody(body: string): Report {
  return reportOf("a & <b>", [judgeCapture("capture", body, { model: "m", stream: true }, "exact")], {
    profile: "exact",
  });
}

/** A report of findings that nobody made: any places in any body. */
function reportOfPlaces(body: string, places: readonly (readonly [number, number])[]): Report {
  const exchange: Exchange = {
    endpoint: "chat",
    request: { method: "POST", path: "/v1/chat/completions" },
    response: { status: 200, headers: null, body, complete: true },
  };
  const findings = places.map(([start, end]): Finding => ({ rule: "sse/json", start, end, found: "x" }));
  return reportOf("a body", [{ id: "one", about: "one", exchange, findings, shown: ["sse/json"] }]);
}

function unescaped(html: string): string {
  return html.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
}

describe("html", () => {
  const bodyIn = (html: string): string =>
    /<pre [^>]*aria-label="Body of[^>]*>([^]*?)<\/pre><\/details>/.exec(html)?.[1] ?? "";

  test("is one file that loads nothing and runs nothing, whatever the server sent", () => {
    const html = htmlReport(reportOfBody(hostile));
    expect(html).not.toMatch(/<script|<link|<img|<iframe|\bsrc=|url\(/i);
    expect(html).toContain("a &amp; &lt;b&gt;");
  });

  test("shows the whole body, byte for byte, with every offending place in a mark", () => {
    const place = fc.tuple(fc.nat(60), fc.nat(20)).map(([start, length]) => [start, start + length] as const);
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), fc.array(place, { maxLength: 8 }), (text, places) => {
        // A sign of ours would not be told from the body's own.
        const body = text.replaceAll("▮", "");
        const fitting = places.map(
          ([start, end]) => [Math.min(start, body.length), Math.min(end, body.length)] as const,
        );
        const html = bodyIn(htmlReport(reportOfPlaces(body, fitting)));
        expect(unescaped(html.replace(/<\/?mark[^>]*>/g, "")).replaceAll("▮", "")).toBe(body);
        const marked = unescaped(
          [...html.matchAll(/<mark[^>]*>([^<]*)<\/mark>/g)].map(([, inside]) => inside).join(""),
        );
        const covered = [...body].length === 0 ? 0 : coverage(body, fitting);
        expect(marked.replaceAll("▮", "").length).toBe(covered);
        expect(marked.includes("▮")).toBe(fitting.some(([start, end]) => start === end && !isInside(start, fitting)));
      }),
    );
  });

  test("tells what is missing where it is missing", () => {
    const body = 'data: {"choices":[]}\n\n';
    const html = bodyIn(htmlReport(reportOfPlaces(body, [[body.length, body.length]])));
    expect(html).toMatch(/<mark title="sse\/json: x">▮<\/mark>$/);
  });
});

function coverage(body: string, places: readonly (readonly [number, number])[]): number {
  return [...body.split("").keys()].filter((at) => places.some(([start, end]) => start <= at && at < end)).length;
}

/** Whether a place of no length lies within another one, which then shows it. */
function isInside(at: number, places: readonly (readonly [number, number])[]): boolean {
  return places.some(([start, end]) => start < end && start <= at && at < end);
}

test("junit is well-formed, and counts errors and warnings as failures", () => {
  const report = reportOfBody(hostile);
  const xml = junitReport(report);
  const open: string[] = [];
  for (const [, close, name, empty] of xml
    .replace(/^<\?xml[^>]*\?>/, "")
    .matchAll(/<(\/?)([\w-]+)(?:\s[\w-]+="[^"<]*")*\s*(\/?)>/g)) {
    if (close) expect(open.pop()).toBe(name);
    else if (!empty) open.push(name ?? "");
  }
  expect(open).toEqual([]);
  expect(xml.replace(/<[^<>]*>/g, "")).not.toMatch(/[<>]|&(?!(?:amp|lt|gt|quot);)/);
  expect([...xml.matchAll(/<failure /g)].length).toBe(report.counts.error + report.counts.warning);
  expect([...xml.matchAll(/<testcase /g)].length).toBe(report.rules.length);
  expect([...xml.matchAll(/<skipped\/>/g)].length).toBe(report.counts["not shown"]);
});

test("json has every rule with its status, and the body as it came", () => {
  const value = JSON.parse(jsonReport(reportOfBody(hostile))) as {
    rules: { id: string; status: string; evidence: { start: number; end: number }[] }[];
    exchanges: { response: { body: string } }[];
  };
  expect(value.exchanges[0]?.response.body).toBe(hostile);
  const crlf = value.rules.find(({ id }) => id === "sse/crlf");
  expect(crlf?.status).toBe("broken");
  expect(hostile.slice(crlf?.evidence[0]?.start, crlf?.evidence[0]?.end)).toMatch(/^data: /);
});

test("pretty and markdown are grouped by what a user would notice, the worst first", () => {
  const report = reportOfBody(hostile);
  for (const text of [prettyReport(report), markdownReport(report)]) {
    const headings = ["The stream cannot be read", "The answer seems to end wrongly", "It is not the form"];
    const places = headings.map((heading) => text.indexOf(heading));
    expect(Math.min(...places)).toBeGreaterThan(0);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(text).toContain("sse/crlf");
    expect(text).toContain("breaks:");
  }
});
