import { expect, test } from "vitest";
import { UpstreamTarget } from "./targets.ts";
import type { Transport } from "./transport.ts";

const transport = {} as Transport;

// The interval grew to a minute: a server that had been absent for 65 s was used again 27 s after it was back.
test("a server that does not answer is probed every two seconds, however long it has been absent", () => {
  const target = new UpstreamTarget("http://127.0.0.1:1/v1", { urls: [] } as never, () => transport);
  for (let failures = 0; failures < 3; failures++) target.failed(0, false);
  let probes = 0;
  for (let now = 0; now <= 600_000; now += 500) {
    if (!target.beginProbe(now)) continue;
    probes++;
    target.endProbe(false, now);
  }
  expect(probes).toBe(300);
});
