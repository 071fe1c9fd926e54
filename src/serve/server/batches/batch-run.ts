import type { BatchBeginning, BatchEnd, BatchForm, LineAnswer, Unanswered } from "../../../wire/apis/batches/form.ts";
import type { BatchError } from "../../../wire/apis/batches/schema.ts";
import { lean } from "../../../wire/apis/profile.ts";
import { invalidRequest, loggedError } from "../../../wire/core/failure.ts";
import type { FailureError } from "../../../wire/core/failure.ts";
import type { JsonObject } from "../../../wire/core/json.ts";
import { random } from "../../../wire/random/random.ts";
import { randomBase62 } from "../../../wire/apis/ids.ts";
import type { FileStore } from "../client-stores.ts";
import { ClientFiles, contentBytes, contentKey } from "../files/client-files.ts";
import { handle } from "../handle.ts";
import type { Client } from "../keys/key-ring.ts";
import type { Service } from "../service.ts";
import { inTurns } from "../turns.ts";
import { BatchExchange } from "./batch-exchange.ts";
import { readBatchInput, readLine } from "./batch-input.ts";
import type { InputLine } from "./batch-input.ts";
import { ResultWriter } from "./result-writer.ts";
import { inputKey, resultsKey } from "./stored-batches.ts";
import type { Claim, ClientBatches } from "./stored-batches.ts";
import { Tally } from "./tally.ts";

/** How often a batch reports and looks whether it was cancelled, in milliseconds. */
const beatMs = 2000;
/** The shortest time before a request is repeated, in milliseconds. */
const minRetryMs = 500;

export interface BatchRunOptions {
  readonly service: Service;
  readonly files: FileStore;
  readonly batches: ClientBatches;
  readonly beginning: BatchBeginning;
  readonly form: BatchForm;
  /** Says that this process runs the batch. */
  readonly claim: Claim;
  /** The most requests that run at the same time. */
  readonly concurrency: number;
}

/** Why no further requests begin. "lost": another process has taken the batch over. */
type Stop = Unanswered | "closing" | "lost";

/** One batch that this process runs. */
export class BatchRun {
  /** Resolves when the batch has ended, or was given back. Never rejects. */
  readonly done: Promise<void>;
  readonly #options: BatchRunOptions;
  readonly #tally = new Tally();
  /** The ids of the requests that have a result. */
  readonly #known = new Set<unknown>();
  /** Of answers and of errors; one for both if the API has one list of results. */
  readonly #writers: ResultWriter[] = [];
  readonly #running = new Set<BatchExchange>();
  /** Ends the waits of requests that are to be repeated. */
  readonly #stopped = new AbortController();
  #stop: Stop | undefined;

  constructor(options: BatchRunOptions) {
    this.#options = options;
    this.done = this.#run().catch((error: unknown) => this.#failed(error));
  }

  /** Stops its requests, and gives the batch back. */
  stop(): Promise<void> {
    this.#end("closing");
    return this.done;
  }

  /** Looks whether the batch was cancelled, or taken over by another process, and reports what was done. Never rejects. */
  async check(): Promise<void> {
    const { batches, beginning, claim } = this.#options;
    try {
      const found = await batches.find(beginning.id);
      if (!found || found.claim?.number !== claim.number) this.#end("lost");
      else if (found.state.cancelledAt !== undefined) this.#end("cancelled");
      else await batches.setBeat(beginning.id, { ...this.#tally.progress(), by: claim.by, at: Date.now() });
    } catch {
      // The next time. What was done is stored with each result.
    }
  }

  #end(stop: Stop): void {
    if (this.#stop !== undefined) return;
    this.#stop = stop;
    this.#stopped.abort();
    for (const exchange of this.#running) exchange.cut();
  }

  async #run(): Promise<void> {
    const { batches, beginning, form, service, claim } = this.#options;
    const { id } = beginning;
    const text = await batches.text(beginning.inputId === "" ? inputKey(id) : contentKey(beginning.inputId));
    if (text === undefined)
      return this.#finish("failed", [
        problem("file_not_found", "The input file is not there any more.", "input_file_id"),
      ]);
    const input = await inTurns(readBatchInput(text, beginning, form));
    if ("errors" in input) return this.#finish("failed", input.errors);
    this.#tally.total = input.lines.length;
    await this.#openResults();
    const client = await clientOf(batches.owner, service);
    if (!client) return this.#refuseAll(input.lines);
    await batches.add(id, { started: { at: now(), total: input.lines.length, model: input.model } });
    service.log.info({ batch: id, requests: input.lines.length, done: this.#known.size }, "batch started");
    const beat = setInterval(() => void this.check(), beatMs);
    const expiry = setTimeout(() => this.#end("expired"), Math.max(0, beginning.expires * 1000 - Date.now()));
    try {
      await this.check();
      await this.#runLines(input.lines, text, client);
    } finally {
      clearInterval(beat);
      clearTimeout(expiry);
    }
    const stop = this.#stop;
    if (stop === "lost") return;
    if (stop === "closing") return void (await batches.add(id, { released: claim.number }));
    await batches.add(id, { finalizing: now() });
    for (const { customId } of stop ? input.lines : [])
      if (!this.#known.has(customId))
        await this.#write(customId, form.unanswered(customId, stop ?? "expired", newLineId()), false);
    await this.#finish(stop ?? "completed");
  }

  async #openResults(): Promise<void> {
    const { batches, beginning } = this.#options;
    const keys =
      beginning.api === "openai" ? [beginning.outputId, beginning.errorId].map(contentKey) : [resultsKey(beginning.id)];
    for (const key of keys)
      this.#writers.push(
        await ResultWriter.open(batches, key, (result) => {
          this.#known.add(result["custom_id"]);
          this.#tally.add(result);
        }),
      );
  }

  /** Runs requests in order, at most `concurrency` at the same time. Rejects if a result cannot be stored. */
  async #runLines(lines: readonly InputLine[], text: string, client: Client): Promise<void> {
    const { concurrency, form } = this.#options;
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let line = lines[next++]; line && this.#stop === undefined; line = lines[next++]) {
        const { customId } = line;
        const answer = this.#known.has(customId) ? undefined : await this.#answer(line, text, client);
        if (answer) await this.#write(customId, form.answered(customId, answer, newLineId()), answer.status === 200);
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, lines.length) }, worker));
  }

  async #write(customId: string, line: string, isAnswer: boolean): Promise<void> {
    await this.#writers[isAnswer ? 0 : this.#writers.length - 1]?.add(line);
    this.#known.add(customId);
    this.#tally.add(JSON.parse(line) as JsonObject);
  }

  /** The answer of a request; undefined if the batch was stopped before it was complete. */
  async #answer(line: InputLine, text: string, client: Client): Promise<LineAnswer | undefined> {
    const { beginning, form, batches, service } = this.#options;
    const read = await inTurns(readLine(text.slice(line.from, line.until), beginning, form));
    // It was valid when the batch began.
    if (!("customId" in read)) return undefined;
    const refusal = refusalOf(read.body);
    if (refusal) return this.#refusal(refusal);
    const ofBatch = { id: beginning.id, client, owner: batches.owner };
    while (this.#stop === undefined) {
      const exchange = new BatchExchange(beginning.endpoint, read.body, beginning.headers, ofBatch);
      this.#running.add(exchange);
      await handle(exchange, service);
      this.#running.delete(exchange);
      const { answer, departure } = exchange;
      if (!answer || departure.happened) return undefined;
      const { retryAfterMs, status } = answer;
      if ((status !== 429 && status !== 503) || retryAfterMs === undefined) return answer;
      await pause(Math.max(minRetryMs, retryAfterMs), this.#stopped.signal);
    }
    return undefined;
  }

  #refusal({ failure }: FailureError): LineAnswer {
    const { errorFormat } = this.#options.form;
    const requestId = errorFormat.newRequestId(Date.now(), random);
    const { status, body } = errorFormat.writeFailure(failure, lean, requestId);
    return { status, requestId, body };
  }

  /** Ends a batch whose client is gone. */
  async #refuseAll(lines: readonly InputLine[]): Promise<void> {
    const { form } = this.#options;
    const message = "The key that created the batch is not valid any more.";
    // Anthropic's batches do not fail: their requests do.
    const answer = this.#refusal(invalidRequest(message));
    for (const { customId } of form.api === "anthropic" ? lines : [])
      if (!this.#known.has(customId)) await this.#write(customId, form.answered(customId, answer, newLineId()), false);
    await this.#finish("failed", [problem("key_removed", message)]);
  }

  async #finish(status: BatchEnd["status"], errors?: readonly BatchError[]): Promise<void> {
    const { batches, files, beginning, service } = this.#options;
    const { id, outputId, errorId, outputExpiresIn, api } = beginning;
    const { owner } = batches;
    for (const fileId of api === "openai" && status !== "failed" ? [outputId, errorId] : []) {
      const text = await batches.text(contentKey(fileId));
      if (text === undefined) continue;
      let bytes = 0;
      for (const chunk of contentBytes({ encoding: "utf-8", text })) bytes += chunk.length;
      await new ClientFiles(files, owner).describe({
        id: fileId,
        name: `${id}_${fileId === outputId ? "output" : "error"}.jsonl`,
        type: "application/jsonl",
        bytes,
        purpose: "batch_output",
        created: now(),
        ...(outputExpiresIn !== undefined && { expires: now() + outputExpiresIn }),
      });
    }
    const progress = this.#tally.progress();
    await batches.add(id, { ended: { at: now(), status, ...(errors && { errors }), ...progress } });
    service.log.info({ batch: id, ...progress.counts }, `batch ${status}`);
  }

  /** The store failed. Another process, or this one, takes the batch over when the claim is stale. */
  #failed(error: unknown): void {
    this.#end("lost");
    const { beginning, service } = this.#options;
    service.log.error({ batch: beginning.id, cause: loggedError(error) }, "batch interrupted");
  }
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}

function newLineId(): string {
  return `batch_req_${randomBase62(24, random)}`;
}

function problem(code: string, message: string, param: string | null = null): BatchError {
  return { code, message, param, line: null };
}

/** The client of a batch, with the lowest tier; undefined if its key is gone. */
async function clientOf(owner: string, { settings: { keys } }: Service): Promise<Client | undefined> {
  if (!keys.required) return { owner: "", tier: "flex" };
  const client = await keys.ofStoreOwner(owner);
  return client && { ...client, tier: "flex" };
}

/** Requests of batches are answered whole. */
function refusalOf(body: JsonObject): FailureError | undefined {
  const name = ["stream", "background"].find((name) => body[name] === true);
  return name === undefined
    ? undefined
    : invalidRequest(`'${name}' is not supported in a batch. Remove it from the request.`, name, "unsupported_value");
}

/** Resolves after `ms` milliseconds, or when the signal is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    // The longest time of a timer, about 24 days.
    const timer = setTimeout(done, Math.min(ms, 2 ** 31 - 1));
    if (signal.aborted) done();
    else signal.addEventListener("abort", done);
  });
}
