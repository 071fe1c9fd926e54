import { Accumulator } from "../generation/accumulate.ts";
import type { Generation } from "../generation/accumulate.ts";
import type { Engine } from "../generation/engine.ts";
import { FailureError } from "../generation/failure.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { Reply } from "./reply.ts";
import { runGeneration } from "./run-generation.ts";

/** A source that never stops would otherwise fill the memory: an answer is held until it is whole. In characters. */
const longestAnswer = 64 * 1024 * 1024;

/** Answers when all is known. A generation that failed has nothing but its error to show, whatever text it had. */
export async function wholeAnswer(
  reply: Reply,
  engine: Engine,
  request: GenerationRequest,
  write: (generation: Generation) => string,
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
  reply.send(200, "application/json", write(generation), generation.source?.headers);
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
