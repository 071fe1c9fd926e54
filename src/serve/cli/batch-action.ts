import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { readFile, truncate } from "node:fs/promises";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { isObject } from "../../wire/core/json.ts";
import type { JsonObject } from "../../wire/core/json.ts";
import { withScheme } from "../config/target.ts";
import { openProgressLine } from "./progress-line.ts";

export interface BatchOptions {
  readonly model?: string;
  readonly url?: string;
  readonly output?: string;
  readonly apiKey?: string;
  readonly concurrency: string;
  readonly json?: boolean;
}

/** One request of the file. */
interface Line {
  readonly id: string;
  readonly path: string;
  readonly body: JsonObject;
}

interface Server {
  /** Without `/v1`. */
  readonly url: string;
  /** For requests that name none; undefined: each must name its own. */
  readonly model: string | undefined;
  close(): Promise<void>;
}

/**
 * Runs the requests of a file and appends their results to the output. Lines that have an answer there are not run again. Resolves to the
 * exit code: 0, 1 if a line has an error, 130 after Ctrl-C. Throws an Error of one sentence.
 */
export async function runBatch(file: string, options: BatchOptions): Promise<number> {
  const concurrency = Number(options.concurrency);
  if (!Number.isInteger(concurrency) || concurrency < 1)
    throw new Error(`--concurrency must be a whole number from 1, not ${options.concurrency}`);
  const output = options.output ?? `${file.replace(/\.jsonl$/, "")}.results.jsonl`;
  const answered = await readAnswered(output);
  const total = await countLines(file);
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  process.once("SIGINT", onSignal);
  const progress = openProgressLine(process.stderr);
  const counts = { total, completed: 0, failed: 0, skipped: 0 };
  const server = await serverFor(options);
  // A key is sent to a server that is named only.
  const key = options.url === undefined ? undefined : (options.apiKey ?? process.env.TRUEWIRE_API_KEY);
  const written = createWriteStream(output, { flags: "a" });
  const lines = linesOf(file);
  const worker = async (): Promise<void> => {
    for (let next = await lines.next(); next.done !== true && !stop.signal.aborted; next = await lines.next()) {
      const line = next.value;
      if (answered.has(line.id)) counts.skipped++;
      else {
        const result = await resultOf(line, server, key, stop.signal);
        if (!result) return;
        counts[result.isAnswer ? "completed" : "failed"]++;
        if (!written.write(`${result.text}\n`)) await once(written, "drain");
      }
      const done = counts.completed + counts.failed + counts.skipped;
      progress.show({ text: `${done} of ${total} requests, ${counts.failed} failed`, fraction: done / total });
    }
  };
  try {
    await Promise.all(Array.from({ length: concurrency }, worker));
  } finally {
    progress.close();
    process.removeListener("SIGINT", onSignal);
    await new Promise<void>((resolve) => written.end(resolve));
    await server.close();
  }
  const { completed, failed, skipped } = counts;
  if (options.json === true) process.stdout.write(`${JSON.stringify({ ...counts, output })}\n`);
  else
    process.stdout.write(
      `${completed} answered, ${failed} failed, ${skipped} had an answer before, of ${total}: ${output}\n`,
    );
  if (stop.signal.aborted) return 130;
  return failed > 0 ? 1 : 0;
}

/** A running server, or one in this process for the target. */
async function serverFor({ model, url }: BatchOptions): Promise<Server> {
  if (url !== undefined) {
    const base = withScheme(url).replace(/\/+$/, "").replace(/\/v1$/, "");
    if (!URL.canParse(base))
      throw new Error(`--url must be the address of a server, such as http://127.0.0.1:8080, not ${url}`);
    return { url: base, model, close: async () => {} };
  }
  if (model === undefined)
    throw new Error("Say which model answers: --model TARGET, or --url URL for a running server");
  const { createServer } = await import("../app/create-server.ts");
  const server = await createServer({ port: 0, logLevel: "silent", models: [model] });
  const [first] = server.models();
  return { url: server.url, model: first?.id, close: () => server.close(0) };
}

/** The ids of the lines that have an answer. A line that was cut off is removed from the file. */
async function readAnswered(output: string): Promise<ReadonlySet<unknown>> {
  const bytes = await readFile(output).catch(() => undefined);
  if (!bytes) return new Set();
  const complete = bytes.lastIndexOf("\n") + 1;
  if (complete < bytes.length) await truncate(output, complete);
  const answered = new Set<unknown>();
  for (const text of bytes.subarray(0, complete).toString().split("\n")) {
    if (text === "") continue;
    const { custom_id: id, response } = JSON.parse(text) as JsonObject;
    if (isObject(response) && response["status_code"] === 200) answered.add(id);
  }
  return answered;
}

async function countLines(file: string): Promise<number> {
  let count = 0;
  for await (const text of createInterface({ input: createReadStream(file), crlfDelay: Infinity }))
    if (text.trim() !== "") count++;
  return count;
}

async function* linesOf(file: string): AsyncGenerator<Line, void> {
  let number = 0;
  for await (const text of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
    number++;
    if (text.trim() !== "") yield readLine(text, number);
  }
}

/** The paths of bodies by a member that only they have. */
const pathsOfBodies = { messages: "/v1/chat/completions", input: "/v1/responses", prompt: "/v1/completions" };

/** Reads a line of a batch, or the body of a request. */
function readLine(text: string, number: number): Line {
  let value: unknown;
  try {
    // `trim` also removes the byte order mark of some programs on Windows.
    value = JSON.parse(text.trim());
  } catch (cause) {
    throw new Error(`line ${number} is not JSON`, { cause });
  }
  const { custom_id: id, url, body } = isObject(value) ? value : {};
  if (typeof id === "string" && typeof url === "string" && isObject(body)) return { id, path: url, body };
  const found = Object.entries(pathsOfBodies).find(([name]) => isObject(value) && value[name] !== undefined);
  if (!isObject(value) || !found)
    throw new Error(
      `line ${number} is no request: expected {"custom_id": …, "url": …, "body": {…}}, or a body with messages, input or prompt`,
    );
  return { id: `line-${number}`, path: found[1], body: value };
}

interface Result {
  readonly text: string;
  readonly isAnswer: boolean;
}

/** The result of a line; undefined after Ctrl-C. A refusal with Retry-After is waited for. */
async function resultOf(
  line: Line,
  { url, model }: Server,
  key: string | undefined,
  signal: AbortSignal,
): Promise<Result | undefined> {
  const body = JSON.stringify({ ...line.body, ...(model !== undefined && { model }) });
  const headers = { "content-type": "application/json", ...(key !== undefined && { authorization: `Bearer ${key}` }) };
  try {
    for (;;) {
      const answer = await fetch(url + line.path, { method: "POST", headers, body, signal });
      const retryAfter = Number(answer.headers.get("retry-after") ?? Number.NaN);
      const text = await answer.text();
      if ((answer.status === 429 || answer.status === 503) && !Number.isNaN(retryAfter)) {
        await wait(Math.max(500, retryAfter * 1000), undefined, { signal });
        continue;
      }
      return written(
        line,
        { status_code: answer.status, request_id: answer.headers.get("x-request-id"), body: jsonOf(text) },
        null,
      );
    }
  } catch (error) {
    if (signal.aborted) return undefined;
    const message = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
    return written(line, null, { code: "connection_error", message });
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** A line as OpenAI's batches have it. */
function written(
  { id }: Line,
  response: ({ readonly status_code: number } & JsonObject) | null,
  error: JsonObject | null,
): Result {
  return { text: JSON.stringify({ custom_id: id, response, error }), isAnswer: response?.status_code === 200 };
}
