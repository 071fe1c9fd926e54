import { beatMs } from "../../wire/apis/port-state.ts";
import type { DetachedAnswer } from "../../wire/apis/port-state.ts";
import { loggedError } from "../../wire/core/failure.ts";
import type { Log } from "./log.ts";
import { runGeneration } from "./run-generation.ts";
import type { GenerationRun } from "./run-generation.ts";
import { Run } from "./run.ts";
import type { Runs } from "./runs.ts";

/** The events of a response are held in memory until they are stored. In characters. */
const maxAnswerLength = 64 * 1024 * 1024;

export interface BackgroundAnswer {
  readonly generation: GenerationRun;
  readonly answer: DetachedAnswer;
  /** The owner of the answer in the store. */
  readonly owner: string;
  /** Called once, when the generation has ended. */
  readonly onEnd?: () => void;
}

/** Generates an answer in the background. Resolves when the store knows that it is in progress. Rejects if there are too many. */
export async function generateInBackground(runs: Runs, detached: BackgroundAnswer, log: Log): Promise<Run> {
  const { answer, owner } = detached;
  const run = new Run();
  runs.add(owner, answer.id, run);
  void run.write(answer.opening);
  try {
    await answer.beat();
  } catch (error) {
    run.forget();
    throw error;
  }
  run.done = generate(run, detached, log).finally(() => run.forget());
  return run;
}

/** Writes the answer to the run, and then to the store. Never rejects. */
async function generate(run: Run, { generation, answer, onEnd }: BackgroundAnswer, log: Log): Promise<void> {
  const { id: response, writer } = answer;
  const beat = async (): Promise<void> => {
    try {
      if (await answer.beat()) void run.cancel();
    } catch (error) {
      log.warn({ response, cause: loggedError(error) }, "the store cannot be reached");
    }
  };
  // One after the other, and none after the end: it would report the answer as still in progress.
  let beating = Promise.resolve();
  const timer = setInterval(() => (beating = beating.then(beat)), beatMs);
  try {
    const end = await runGeneration(generation, run.departure, (events) => {
      void run.write(writer.write(events));
      if (run.size > maxAnswerLength) run.stop();
      return undefined;
    }).finally(() => {
      clearInterval(timer);
      onEnd?.();
    });
    await beating;
    if (end.kind === "client-gone") void run.write(writer.write([{ type: "end", end }]));
  } catch (error) {
    // A defect of the writer: the answer has no end, and is stored as failed.
    log.error({ response, cause: loggedError(error) }, "the answer could not be written");
    await beating;
  }
  try {
    await answer.end(run.text(), run.isCancelled);
  } catch (error) {
    log.error({ response, cause: loggedError(error) }, "the answer could not be kept");
  }
}
