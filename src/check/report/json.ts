import type { Report } from "./report.ts";

/** For programs: the whole report, every rule with its status, and the raw bodies. */
export function jsonReport(report: Report): string {
  const { subject, model, profile, remarks, forms, counts, rules, judgements } = report;
  const exchanges = judgements.map(({ id, about, exchange, notShown }) => ({
    id,
    about,
    ...(exchange && { request: exchange.request, response: exchange.response }),
    ...(notShown !== undefined && { notShown }),
  }));
  return `${JSON.stringify({ subject, model, profile, remarks, forms, counts, rules, exchanges }, null, 2)}\n`;
}
