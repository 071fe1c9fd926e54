import { readFile, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { text } from "node:stream/consumers";
import pc from "picocolors";
import { isHar, isRecording, recordedAnswers } from "../../judge/capture/read-captures.ts";
import type { RecordedAnswer } from "../../judge/capture/read-captures.ts";
import { capturedAnswers, judgeAnswer, judgeCapture } from "../../judge/check/check-capture.ts";
import { judgementOf } from "../../judge/check/probe/judged.ts";
import { CheckError, onlyVendor, runCheck } from "../../judge/check/probe/run-check.ts";
import { htmlReport } from "../../judge/check/report/report-tree.ts";
import { prettyReport, ruleList } from "../../judge/check/report/terminal.ts";
import { jsonReport, junitReport, markdownReport } from "../../judge/check/report/text-reports.ts";
import type { Report } from "../../judge/check/report/report.ts";
import { reportOf } from "../../judge/check/report/report-of.ts";
import type { ProfileName } from "../../judge/check/rules/profile/profile-rule.ts";
import { withScheme } from "../config/target.ts";
import { profileNamed } from "../../wire/apis/profile.ts";

export interface CheckFlags {
  readonly model?: string;
  readonly key?: string;
  readonly only?: string | readonly string[];
  readonly profile?: string;
  readonly maxWarnings?: string;
  readonly format?: string;
  readonly output?: string;
  readonly timeout?: string;
  readonly concurrency?: string;
  readonly file?: string;
  readonly request?: string;
  readonly list?: boolean | string;
}

const reporters: Readonly<Record<string, (report: Report) => string>> = {
  pretty: prettyReport,
  json: jsonReport,
  junit: junitReport,
  markdown: markdownReport,
  html: htmlReport,
};

/** Runs `truewire check`. Exit code 0: no errors; 1: errors, or too many warnings; 2: it could not be checked. */
export async function checkAction(url: string | undefined, flags: CheckFlags): Promise<number> {
  if (flags.list) {
    process.stdout.write(ruleList());
    return 0;
  }
  const { format = "pretty" } = flags;
  const reporter = Object.hasOwn(reporters, format) ? reporters[format] : undefined;
  if (!reporter) return cannot(`--format must be one of ${Object.keys(reporters).join(", ")}, not ${format}.`);
  const profile = flags.profile === undefined ? undefined : profileNamed(flags.profile)?.name;
  if (flags.profile !== undefined && !profile) return cannot(`--profile must be lean or exact, not ${flags.profile}.`);
  if (flags.request !== undefined && flags.file === undefined)
    return cannot("--request needs --file, the answer to it.");
  let report: Report;
  let warningsAllowed: number;
  try {
    warningsAllowed = flags.maxWarnings === undefined ? Infinity : count("--max-warnings", flags.maxWarnings);
    report =
      flags.file === undefined
        ? await checkServer(url, flags, profile)
        : await checkFile(flags.file, flags.request, profile);
  } catch (error) {
    if (error instanceof CheckError) return cannot(error.message);
    throw error;
  }
  const written = reporter(report);
  if (flags.output === undefined) process.stdout.write(written);
  else await writeFile(flags.output, written);
  const { error, warning } = report.counts;
  if (warning > warningsAllowed) {
    const found = `${warning} ${warning === 1 ? "warning" : "warnings"}`;
    process.stderr.write(`truewire: ${found}, and --max-warnings allows ${warningsAllowed}.\n`);
  }
  return error > 0 || warning > warningsAllowed ? 1 : 0;
}

async function checkServer(target: string | undefined, flags: CheckFlags, profile?: ProfileName): Promise<Report> {
  const url = target === undefined ? "" : withScheme(target);
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new CheckError("Give the API's base URL, such as http://localhost:11434/v1, or a capture with --file.");
  const only = flags.only === undefined ? undefined : [flags.only].flat();
  const key = flags.key ?? process.env[onlyVendor(only).variable];
  const tty = process.stderr.isTTY;
  const run = await runCheck({
    url,
    timeout: positive("--timeout", flags.timeout ?? "60") * 1000,
    concurrency: positive("--concurrency", flags.concurrency ?? "2"),
    ...(flags.model !== undefined && { model: flags.model }),
    key,
    profile,
    only,
    onProgress: ({ done, all, about }) => tty && process.stderr.write(`\r\x1b[K${pc.dim(`${done}/${all} ${about}`)}`),
  });
  if (tty) process.stderr.write("\r\x1b[K");
  return reportOf(run.url, run.judged.map(judgementOf), {
    model: run.model,
    remarks: run.remarks,
    profile,
  });
}

async function checkFile(file: string, requestFile?: string, profile?: ProfileName): Promise<Report> {
  const body = await read(file);
  let request: Record<string, unknown> | undefined;
  if (requestFile !== undefined) {
    try {
      request = JSON.parse(await read(requestFile)) as Record<string, unknown>;
    } catch (cause) {
      if (cause instanceof CheckError) throw cause;
      throw new CheckError(`${requestFile} is not JSON: ${(cause as Error).message}.`, { cause });
    }
  }
  const judgements =
    isRecording(body) || isHar(body) || /\.har$/i.test(file)
      ? recorded(file, body).map(({ from, ...answer }) => judgeAnswer(from, answer.body, answer, profile))
      : capturedAnswers(body).map((answer, at, all) =>
          judgeCapture(all.length === 1 ? basename(file) : `${basename(file)}:${at + 1}`, answer, request, profile),
        );
  return reportOf(file, judgements, profile && { profile });
}

/** The paths whose answers have rules. */
const isApi = /\/(?:chat\/completions|completions|responses|messages|embeddings)$/;

function recorded(file: string, text: string): readonly RecordedAnswer[] {
  try {
    if (isRecording(text)) return recordedAnswers(text, basename(file));
    if (!isHar(text)) throw new Error(`${basename(file)}: expected a HAR file: {"log":{"entries":[…]}}`);
    // A browser saves everything that a page has loaded.
    const answers = recordedAnswers(text, basename(file)).filter(
      ({ method, path }) => method === "POST" && isApi.test(path),
    );
    if (answers.length > 0) return answers;
    throw new Error(`${basename(file)}: no entry is a POST to an API, such as /v1/chat/completions or /v1/messages`);
  } catch (cause) {
    throw new CheckError(`${(cause as Error).message}.`, { cause });
  }
}

async function read(file: string): Promise<string> {
  try {
    return file === "-" ? await text(process.stdin) : await readFile(file, "utf8");
  } catch (cause) {
    throw new CheckError(`${file} cannot be read: ${(cause as Error).message}.`, { cause });
  }
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new CheckError(`${name} must be a number above 0, not ${text}.`);
  return value;
}

function count(name: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new CheckError(`${name} must be a whole number, 0 or more, not ${text}.`);
  return Number(text);
}

function cannot(message: string): number {
  process.stderr.write(`truewire: ${message}\n`);
  return 2;
}
