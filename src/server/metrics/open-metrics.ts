import { Gauge, Registry } from "prom-client";
import { EngineNumbers } from "./engine-numbers.ts";
import type { Metrics } from "./metrics.ts";
import { ProcessNumbers } from "./process-numbers.ts";
import { RequestNumbers } from "./request-numbers.ts";

/** Begins to count, in a registry of its own: whoever runs several servers, or counts for itself, finds nothing of it in theirs. */
export function openMetrics(): Metrics {
  const registry = new Registry();
  const requests = new RequestNumbers(registry);
  const engines = new EngineNumbers(registry);
  const ofProcess = new ProcessNumbers(registry);
  const open = new Gauge({
    name: "truewire_open_requests",
    help: "Requests that are being answered, the one for these numbers included.",
    registers: [registry],
  });
  return {
    observe: (record, outcome) => requests.observe(record, outcome),
    contentType: registry.contentType,
    async text(served, openRequests) {
      const ofRequests = requests.text();
      engines.refresh(served);
      ofProcess.refresh();
      open.set(openRequests);
      return `${ofRequests}\n${await registry.metrics()}`;
    },
    close: () => ofProcess.close(),
  };
}
