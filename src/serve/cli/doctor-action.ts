import { createInterface } from "node:readline/promises";
import pc from "picocolors";
import { withScheme } from "../config/target.ts";
import type { DoctorFinding, DoctorReport } from "./doctor-report.ts";

export interface DoctorFlags {
  readonly key?: string;
  readonly model?: string;
  readonly timeout: string;
  readonly json?: true;
  readonly write?: string;
}

const sign: Record<DoctorFinding["status"], string> = {
  ok: pc.green("ok      "),
  problem: pc.red("problem "),
  unknown: pc.yellow("unknown "),
};

/** Runs `truewire doctor`. Exit code 0: no problems; 1: problems; 2: there was nothing to examine. */
export async function doctorAction(target: string | undefined, flags: DoctorFlags): Promise<number> {
  const seconds = Number(flags.timeout);
  if (!(seconds > 0 && seconds <= 3600))
    return cannot(`--timeout must be a number of seconds from 0 to 3600, not ${flags.timeout}.`);
  const url = target === undefined ? undefined : withScheme(target);
  if (url !== undefined && !(URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)))
    return cannot(`${target} is not the URL of a server: give an API's base URL, such as http://localhost:11434/v1.`);
  const { username = "", password = "", search = "", hash = "" } = url === undefined ? {} : new URL(url);
  if (username + password + search + hash !== "")
    return cannot("The URL must not contain a password or a query: pass a key with --key.");
  const report = url === undefined ? await thisMachine(seconds * 1000) : await server(url, flags, seconds * 1000);
  process.stdout.write(flags.json ? `${JSON.stringify(report, null, 2)}\n` : written(report));
  if (!report.examined) return 2;
  try {
    await offerProfile(report, flags);
  } catch (error) {
    return cannot((error as Error).message);
  }
  return report.findings.some(({ status }) => status === "problem") ? 1 : 0;
}

async function server(
  url: string,
  { key = process.env.OPENAI_API_KEY, model, json }: DoctorFlags,
  budget: number,
): Promise<DoctorReport> {
  const { examineServer } = await import("./doctor-server.ts");
  const waiting = json ? undefined : openWaitingLines();
  try {
    const own = {
      ...(key && { key }),
      ...(model !== undefined && { model }),
      ...(waiting && { onStep: waiting.step }),
    };
    return await examineServer({ url, budget, ...own });
  } finally {
    waiting?.close();
  }
}

/** The file that `truewire serve` reads by itself. */
const configFile = "truewire.yaml";

/** Writes the profile into the file of `--write`, or where a person at the terminal agrees; prints it otherwise. */
async function offerProfile({ subject, profile }: DoctorReport, { json, write }: DoctorFlags): Promise<void> {
  if (profile === undefined || (json && write === undefined)) {
    if (write !== undefined && !json) process.stdout.write(`\nThere is nothing to write into ${write}.\n`);
    return;
  }
  const { entryText, writeProfile } = await import("./doctor-profile.ts");
  let file = write;
  if (file === undefined) {
    process.stdout.write(`\nWhat it refuses, for the configuration:\n\n${entryText(subject, profile)}`);
    if (!process.stdin.isTTY || !process.stdout.isTTY) return;
    const terminal = createInterface({ input: process.stdin, output: process.stdout });
    const answer = await terminal.question(`\nWrite it to ${configFile}? [y/N] `);
    terminal.close();
    if (!/^y(?:es)?$/i.test(answer.trim())) return;
    file = configFile;
  }
  await writeProfile(file, subject, profile);
  if (!json) process.stdout.write(`\n${file} has what the server refuses.\n`);
}

/** How often a line says what is waited for, in milliseconds. */
const waitingMs = 2000;

/** Lines on stderr while a server takes its time: what it was asked, and how long ago. */
function openWaitingLines(): { readonly step: (about: string) => void; close(): void } {
  let [about, since] = ["", performance.now()];
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - since) / 1000);
    if (seconds > 0) process.stderr.write(`truewire: waiting for ${about} (${seconds} s)\n`);
  }, waitingMs);
  return {
    step: (next) => {
      [about, since] = [next, performance.now()];
    },
    close: () => clearInterval(timer),
  };
}

async function thisMachine(budget: number): Promise<DoctorReport> {
  const { lookAtMachine, machineFindings } = await import("./doctor-machine.ts");
  const findings = machineFindings(await lookAtMachine(process.env, budget));
  return { subject: "this machine", examined: true, findings };
}

/** For a terminal: a line for each finding, and below a problem what cures it. */
function written({ subject, model, findings }: DoctorReport): string {
  const of = model === undefined ? "" : pc.dim(`, model ${printable(model)}`);
  const lines = findings.flatMap(({ status, text, cure }) => [
    `  ${sign[status]} ${printable(text)}`,
    ...(cure === undefined ? [] : [`           ${pc.cyan("→")} ${printable(cure)}`]),
  ]);
  const problems = findings.filter(({ status }) => status === "problem").length;
  const sum = problems === 0 ? "no problems" : problems === 1 ? "1 problem" : `${problems} problems`;
  return [`${pc.bold(subject)}${of}`, ...lines, "", sum, ""].join("\n");
}

/** Servers write some of these texts: no control characters of theirs reach the terminal. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]+/gu, " ");
}

function cannot(message: string): number {
  process.stderr.write(`truewire: ${message}\n`);
  return 2;
}
