import { Accumulator } from "../core/accumulate.ts";
import type { Generation } from "../core/accumulate.ts";
import type { Engine } from "../core/engine.ts";
import { FailureError } from "../core/failure.ts";
import type { GenerationRequest } from "../core/request.ts";
import type { Reply } from "./reply.ts";
import { runGeneration } from "./run-generation.ts";

/** A whole answer is held in memory until it is complete, so a source that never stops must be cut. In characters. */
const longestAnswer = 64 * 1024 * 1024;

/** Answers when the generation is complete. One that failed is answered with its error alone, whatever text it had. */
export async function wholeAnswer(
  reply: Reply,
  engine: Pick<Engine, "generate">,
  request: GenerationRequest,
  write: (generation: Generation) => string,
  keep?: () => Promise<void>,
): Promise<void> {
  const { exchange, record } = reply;
  const accumulator = new Accumulator();
  const end = await runGeneration(engine, request, exchange.departure, (events) => {
    record.see(events);
    if (record.characters > longestAnswer) throw tooLong();
    accumulator.add(events);
    return undefined;
  });
  if ("failure" in end) throw new FailureError(end.failure);
  if (end.kind !== "done") return;
  const generation = accumulator.result();
  const body = write(generation);
  if (keep) await keep();
  reply.send(200, "application/json", body, generation.source?.headers);
}

function tooLong(): FailureError {
  return new FailureError({
    message: `The answer is longer than ${longestAnswer} characters. Ask for it as a stream.`,
    status: 502,
    kind: "bad-answer",
    param: null,
    code: null,
  });
}
