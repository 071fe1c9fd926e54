import { builtMain } from "../../test/support/serve.ts";
import { command } from "../place.ts";
import type { Trial } from "./trial.ts";

interface Report {
  readonly counts: Readonly<Record<string, number>>;
  readonly rules: readonly { readonly id: string; readonly severity: string; readonly status: string }[];
}

/** Runs `truewire check` and returns its report. It exits with 1 where a rule is broken. */
async function check(url: string, model: string): Promise<Report> {
  const args = [builtMain, "check", `${url}/v1`, "--model", model, "--format", "json", "--concurrency", "1"];
  const shell = ["-c", 'node "$@" || [ $? -eq 1 ]', "sh", ...args];
  return JSON.parse(await command("sh", shell, { env: { OPENAI_API_KEY: "none" } })) as Report;
}

function errorsOf({ rules }: Report): string[] {
  return rules.filter((rule) => rule.status === "broken" && rule.severity === "error").map(({ id }) => id);
}

/** What `truewire check` finds in the server itself. */
const direct: Trial = {
  name: "`truewire check` of the server itself",
  async run({ started }) {
    return { ok: undefined, detail: said(await check(started.url, started.model)) };
  },
};

/** What it finds with Truewire in front: nothing. */
const through: Trial = {
  name: "`truewire check` with Truewire in front",
  async run({ truewire, model }) {
    const report = await check(truewire, model);
    return { ok: report.counts["error"] === 0, detail: said(report) };
  },
};

function said(report: Report): string {
  const errors = errorsOf(report);
  const { error, warning } = report.counts;
  return `${error} errors, ${warning} warnings${errors.length === 0 ? "" : ` (${errors.join(", ")})`}`;
}

/** What `truewire doctor` says. */
const doctor: Trial = {
  name: "`truewire doctor`",
  async run({ server, started }) {
    const args = [builtMain, "doctor", `${started.url}/v1`, "--json", "--timeout", "60", "--model", started.model];
    const shell = ["-c", 'node "$@" || [ $? -eq 1 ]', "sh", ...args];
    const said = await command("sh", shell, { env: { OPENAI_API_KEY: "none" } });
    const { findings } = JSON.parse(said) as { findings: { id: string; status: string; text: string }[] };
    const problems = findings.filter(({ status }) => status !== "ok").map(({ text }) => text);
    const isNamed = findings.some(({ id, text }) => id === "server" && text.includes(server.name));
    return { ok: true, detail: [...(isNamed ? [] : ["not recognised"]), ...problems].join("; ") };
  },
};

export const judgeTrials: readonly Trial[] = [doctor, direct, through];
