import type { EventSource } from "./call-progress.ts";
import { Accumulator } from "../core/accumulate.ts";
import type { Generation } from "../core/accumulate.ts";

/**
 * Collects a stream of events into the whole generation: `accumulate` for events that are still to come. Rejects only if `events` throws.
 *
 * @example
 * import { accumulateStream, readChatStream } from "truewire";
 *
 * const stream = 'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
 * const { choices, end } = await accumulateStream(readChatStream(stream));
 * console.log(choices[0].text, end.kind);
 * // → Hi done
 */
export async function accumulateStream(events: EventSource): Promise<Generation> {
  const accumulator = new Accumulator();
  for await (const item of events) accumulator.add("type" in item ? [item] : item);
  return accumulator.result();
}
