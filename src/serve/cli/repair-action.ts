import { once } from "node:events";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { isRecording, recordedAnswers } from "../../judge/capture/read-captures.ts";
import type { RecordedAnswer } from "../../judge/capture/read-captures.ts";
import { profileNamed } from "../../wire/apis/profile.ts";
import { capturedApis } from "../../wire/apis/ordered-capture.ts";
import type { RepairedCapture, RepairOptions } from "../../wire/apis/repair-capture.ts";
import { repairCapture } from "../../judge/check/repair.ts";
import { random } from "../../wire/random/random.ts";

const endpoints = [...capturedApis, "auto"] as const;

/**
 * Repairs one capture, or one a line. Throws when the input cannot be a capture at all. An answer that was cut off or refused is written
 * with its error, as a server would write it.
 */
export async function repairStdin(options: { wire: string; from: string; jsonl?: boolean }): Promise<void> {
  const from = endpoints.find((name) => name === options.from);
  if (!from) throw new Error(`--from must be one of ${endpoints.join(", ")}, not ${options.from}`);
  const profile = profileNamed(options.wire);
  if (!profile) throw new Error(`--wire must be lean or exact, not ${options.wire}`);
  const settings: RepairOptions = { profile, from, random, now: Math.floor(Date.now() / 1000) };
  if (options.jsonl === true) await repairLines(settings);
  else {
    const capture = await text(process.stdin);
    if (capture.trim() === "") throw new Error("Nothing came on stdin: truewire repair < capture.sse");
    if (!answerLine.test(capture))
      throw new Error("stdin has no answer of an API: repair reads an event stream (data: {…}) or a JSON body");
    const { body, request } = isRecording(capture) ? onlyAnswer(capture) : { body: capture };
    const repaired = repairCapture(body, { ...settings, request });
    process.stdout.write(repaired.body);
    process.stderr.write(report(repaired, body));
  }
}

/** The beginning of a line of an event stream, or of JSON. */
const answerLine = /^[ \t\uFEFF]*(?:[{[:]|data:|event:)/m;

function onlyAnswer(recording: string): RecordedAnswer {
  const answers = recordedAnswers(recording, "stdin");
  const [first, ...others] = answers;
  if (first && others.length === 0) return first;
  throw new Error(`The recording has ${answers.length} answers: repair them with --jsonl`);
}

async function repairLines(settings: RepairOptions): Promise<void> {
  let number = 0;
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
    number++;
    if (line.trim() === "") continue;
    const job = readJob(line, number);
    const { request, from = settings.from } = job;
    const { body, repairs } = repairCapture(job.body, { ...settings, from, request });
    if (!process.stdout.write(`${JSON.stringify({ id: job.id, body, repairs })}\n`))
      await once(process.stdout, "drain");
  }
}

interface Job {
  readonly id: unknown;
  readonly body: string;
  readonly request: unknown;
  readonly from: RepairOptions["from"] | undefined;
}

function readJob(line: string, number: number): Job {
  let job: unknown;
  try {
    job = JSON.parse(line);
  } catch (cause) {
    throw new Error(`line ${number} is not JSON: expected {"id": …, "body": "data: …"}`, { cause });
  }
  if (isRecording(line)) {
    const [answer] = recordedAnswers(line, `line ${number}`);
    if (answer) return { id: number, body: answer.body, request: answer.request, from: undefined };
  }
  const { id, endpoint, request, body } = (job ?? {}) as { [name: string]: unknown };
  if (typeof body !== "string") throw new Error(`line ${number} has no body: expected {"id": …, "body": "data: …"}`);
  return { id, body, request, from: fromOf(endpoint) };
}

/** `/v1/chat/completions`, or the short name. */
function fromOf(endpoint: unknown): RepairOptions["from"] | undefined {
  if (typeof endpoint !== "string") return undefined;
  return capturedApis.find((name) => endpoint.includes(name));
}

function report({ body, repairs, end }: RepairedCapture, capture: string): string {
  const lines = repairs.map(({ id, sentence, count }) => `${count} × ${id}: ${sentence}`);
  if ("failure" in end) lines.push(`The answer ends in an error: ${end.failure.message}`);
  if (lines.length === 0) lines.push(sameText(body, capture) ? nothingToRepair : onlyForm);
  return lines.map((line) => `${line}\n`).join("");
}

const nothingToRepair = "Nothing had to be repaired.";
const onlyForm = "Nothing had to be repaired; the answer was written in the form of --wire.";

/** Whether two answers have the same bytes, but for the characters of `obfuscation`, which are random. */
function sameText(body: string, capture: string): boolean {
  const visible = (text: string): string =>
    text.replaceAll(/"obfuscation":"(\w*)"/g, (_, padding: string) => `${padding.length}`);
  return visible(body) === visible(capture);
}
