import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { serveFixture } from "../support/fixture-server.ts";
import { until } from "../support/scripted-engine.ts";

/** It waited in the stop for ever, with all its memory: a stopped process does not notice that its parent is gone. */
test.runIf(process.platform === "linux")("a second SIGINT takes a stopped model's process along", async () => {
  const server = await serveFixture();
  const { pid } = server.process;
  const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ")[0]);
  process.kill(child, "SIGSTOP");
  // The first one asks the child to end what runs, and waits; the second one does not.
  server.process.kill("SIGINT");
  const exited = server.stop("SIGINT");
  await exited;
  await until(() => !isAlive(child), "the model's process is gone");
  expect(isAlive(child)).toBe(false);
  await server.close();
});

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
