import type { Engine } from "../core/engine.ts";
import type { GenerationEvent } from "../core/events.ts";
import type { GenerationRequest } from "../core/request.ts";
import type { Reply } from "./reply.ts";
import { RequestRecord } from "./request-record.ts";
import type { Service } from "./service.ts";

type Generator = Pick<Engine, "generate">;

/** What generates, observed by the record of its request. */
export function recordedEngine(engine: Generator, record: RequestRecord): Generator {
  return {
    generate(request) {
      const { api, servedModel, trace, inspection } = record;
      inspection?.understood(request);
      if (api && servedModel !== undefined) trace?.operationBegins(api.operation, servedModel, request);
      return engine.generate(request, record);
    },
  };
}

/**
 * The same for an answer that goes on without its client: it has a record, and a line in the log, of its own, and its request's is that of
 * one who was told to wait.
 */
export function engineOfRun(
  engine: Generator,
  { record: asked, requestId: req }: Reply,
  { log, metrics }: Service,
): Generator {
  const { api, model, servedModel, keyName, inspection } = asked;
  const record = Object.assign(new RequestRecord(), { api, model, servedModel, keyName, inspection, status: 200 });
  const over = (): void => {
    const outcome = record.outcome(record.end === undefined);
    metrics?.observe(record, outcome);
    inspection?.ended(outcome, record);
    log.info({ req, ...record.fields() }, `${outcome} in the background`);
  };
  return {
    generate(request) {
      asked.detached = true;
      inspection?.understood(request);
      return seen(engine, request, record, over);
    },
  };
}

function seen(
  engine: Generator,
  request: GenerationRequest,
  record: RequestRecord,
  over: () => void,
): AsyncIterable<readonly GenerationEvent[]> {
  return {
    [Symbol.asyncIterator]() {
      const source = engine.generate(request, record)[Symbol.asyncIterator]();
      let isOver = false;
      const end = (): void => {
        if (!isOver) over();
        isOver = true;
      };
      return {
        async next() {
          const step = await source.next();
          if (step.done === true) end();
          else record.see(step.value);
          return step;
        },
        async return() {
          await source.return?.();
          end();
          return { done: true, value: undefined };
        },
      };
    },
  };
}
