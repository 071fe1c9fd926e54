import type { Engine } from "../core/engine.ts";
import type { GenerationEvent } from "../core/events.ts";
import { FailureError } from "../core/failure.ts";
import type { GenerationRequest } from "../core/request.ts";
import { shows } from "../core/shows.ts";
import { internalError } from "../apis/failures.ts";
import type { StreamWriter } from "../apis/port.ts";
import type { HeaderFields } from "./exchange.ts";
import type { StreamLog } from "./log.ts";
import type { Reply } from "./reply.ts";
import { runGeneration } from "./run-generation.ts";
import { SlowReader } from "./slow-reader.ts";

export interface StreamAnswer {
  readonly engine: Pick<Engine, "generate">;
  readonly request: GenerationRequest;
  readonly writer: StreamWriter;
  readonly headers: HeaderFields;
  readonly holdMs: number;
  readonly keepAliveMs: number;
  readonly readerPatienceMs: number;
  /** Whether others wait for what a slow reader holds. */
  readonly othersWait: () => boolean;
  readonly streamLog?: StreamLog;
  /** Keeps the answer when it was written; its end waits for that. */
  readonly keep?: () => Promise<void>;
}

/**
 * Answers with a stream. Its 200 goes out with the first batch that shows anything, so that an early failure keeps its status; after
 * `holdMs` without one it goes out alone, with the role chunk. From then on a comment follows every `keepAliveMs` of silence.
 */
export async function streamAnswer(reply: Reply, answer: StreamAnswer): Promise<void> {
  const { engine, request, writer, headers, streamLog } = answer;
  const { exchange, record } = reply;
  const reader = new SlowReader(answer.readerPatienceMs, answer.othersWait, () => {
    record.cut = true;
    exchange.cut();
  });
  let lastWrite = 0;

  /**
   * The source's headers that the client should see. A `start` event brings them, often in a batch of which nothing is written yet.
   */
  let sourceHeaders: HeaderFields | undefined;

  /** Sends one piece; a promise when the reader, or the log's disk, must be waited for. */
  const send = (text: string): Promise<void> | undefined => {
    if (!reply.sent) {
      reply.open({ ...headers, ...sourceHeaders });
      clearTimeout(timer);
      timer = setTimeout(beat, answer.keepAliveMs);
    }
    lastWrite = performance.now();
    const logged = streamLog?.write(reply.requestId, text);
    const sent = exchange.write(text);
    if (!sent) return logged;
    const taken = reader.wait(sent);
    return logged ? Promise.all([taken, logged]).then(() => {}) : taken;
  };

  // One timer for both: it ends the hold; once the answer is open, it looks for silence.
  const beat = (): void => {
    const silence = performance.now() - lastWrite;
    if (!reply.sent) return void send(writer.open());
    const silent = silence >= answer.keepAliveMs;
    if (silent && !reader.stalls) void send(writer.keepAlive());
    timer = setTimeout(beat, silent ? answer.keepAliveMs : answer.keepAliveMs - silence);
  };
  let timer = setTimeout(beat, answer.holdMs);

  const take = (events: readonly GenerationEvent[]): Promise<void> | undefined => {
    record.see(events);
    if (!reply.sent) sourceHeaders ??= events.find((event) => event.type === "start")?.source?.headers;
    const last = events.at(-1);
    if (last?.type !== "end") {
      const text = writer.write(events);
      return text === "" ? undefined : send(text);
    }
    clearTimeout(timer);
    if (!reply.sent && "failure" in last.end && !events.some(shows)) {
      reply.fail(new FailureError(last.end.failure));
      return undefined;
    }
    const text = writer.write(events);
    if (!reply.sent) reply.open({ ...headers, ...sourceHeaders });
    void streamLog?.write(reply.requestId, text);
    if (!answer.keep) return void exchange.end(text);
    return answer.keep().then(() => exchange.end(text));
  };

  try {
    await runGeneration(engine, request, exchange.departure, take);
  } catch (cause) {
    // A bug of ours: an open stream still ends as every stream of its API does.
    if (reply.sent)
      exchange.end(
        writer.write([{ type: "end", end: { kind: "engine-error", failure: internalError(cause).failure } }]),
      );
    throw cause;
  } finally {
    clearTimeout(timer);
    reader.end();
  }
}
