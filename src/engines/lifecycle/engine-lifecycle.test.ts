import { expect, test, vi } from "vitest";
import { EngineLifecycle } from "./engine-lifecycle.ts";

/** A lifecycle that records what happens when it closes. */
function watched(): {
  lifecycle: EngineLifecycle<string>;
  happened: string[];
  close: (graceMs: number) => Promise<void>;
} {
  const lifecycle = new EngineLifecycle<string>();
  const happened: string[] = [];
  const close = (graceMs: number): Promise<void> =>
    lifecycle.close(graceMs, {
      stop: (name) => {
        happened.push(`stop ${name}`);
        lifecycle.end(name);
      },
      release: async () => void happened.push("release"),
    });
  return { lifecycle, happened, close };
}

test("close() waits for open generations, then releases", async () => {
  const { lifecycle, happened, close } = watched();
  lifecycle.begin("a");
  lifecycle.begin("b");
  const closed = close(60_000);
  expect(lifecycle.state).toBe("closed");
  lifecycle.end("a");
  await Promise.resolve();
  expect(happened).toEqual([]);
  lifecycle.end("b");
  await closed;
  expect(happened).toEqual(["release"]);
});

test("generations that are open after the grace period are stopped", async () => {
  vi.useFakeTimers();
  try {
    const { lifecycle, happened, close } = watched();
    lifecycle.begin("a");
    const closed = close(1000);
    await vi.advanceTimersByTimeAsync(999);
    expect(happened).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    await closed;
    expect(happened).toEqual(["stop a", "release"]);
  } finally {
    vi.useRealTimers();
  }
});

test.each(["restarting", "failed"] as const)("nothing is waited for when the engine is %s", async (state) => {
  const { lifecycle, happened, close } = watched();
  lifecycle.begin("a");
  lifecycle.setState(state, "It crashed.");
  expect(lifecycle.health()).toEqual({ state, message: "It crashed." });
  await close(60_000);
  expect(happened).toEqual(["stop a", "release"]);
});

test("close() returns the same promise again, and a closed engine does not change its state", async () => {
  const { lifecycle, happened, close } = watched();
  await Promise.all([close(0), close(1000)]);
  lifecycle.setState("ready");
  expect(lifecycle.health()).toEqual({ state: "closed" });
  expect(happened).toEqual(["release"]);
});
