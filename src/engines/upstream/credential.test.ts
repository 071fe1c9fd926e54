import { describe, expect, test } from "vitest";
import { chatSource } from "../../wire/apis/chat/port.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { commandToken, Renewed } from "./credential.ts";

const minute = 60_000;

/** A value of 50 minutes; `obtained` settles each renewal in turn. */
function renewed(): {
  values: Renewed<string>;
  runs: () => number;
  settle: (outcome: string | Error) => Promise<void>;
  pass: (ms: number) => void;
  warnings: unknown[];
} {
  let now = 1_000_000;
  let runs = 0;
  let settleRun: (outcome: string | Error) => void = () => {};
  const warnings: unknown[] = [];
  const values = new Renewed(
    () => {
      runs++;
      return new Promise<{ value: string; expiresAt: number }>((resolve, reject) => {
        settleRun = (outcome) =>
          typeof outcome === "string" ? resolve({ value: outcome, expiresAt: now + 50 * minute }) : reject(outcome);
      });
    },
    (error) => warnings.push(error),
    () => now,
  );
  return {
    values,
    runs: () => runs,
    async settle(outcome) {
      settleRun(outcome);
      await new Promise((resolve) => setImmediate(resolve));
    },
    pass: (ms) => (now += ms),
    warnings,
  };
}

describe("a credential that expires", () => {
  test("any number of concurrent requests wait for one run", async () => {
    const { values, runs, settle } = renewed();
    const all = Array.from({ length: 1000 }, () => values.get());
    expect(runs()).toBe(1);
    await settle("a");
    expect(new Set(await Promise.all(all))).toEqual(new Set(["a"]));
    expect(values.get()).toBe("a");
    expect(runs()).toBe(1);
  });

  test("it is renewed in the background before it expires: no request waits", async () => {
    const { values, runs, settle, pass } = renewed();
    void values.get();
    await settle("a");
    pass(44 * minute);
    expect([values.get(), runs()]).toEqual(["a", 1]);
    pass(2 * minute);
    expect([values.get(), values.get(), runs()]).toEqual(["a", "a", 2]);
    await settle("b");
    expect(values.get()).toBe("b");
  });

  test("a failure in the background is a warning, not repeated for each request; expired, it is the requests' failure", async () => {
    const { values, runs, settle, pass, warnings } = renewed();
    void values.get();
    await settle("a");
    pass(46 * minute);
    expect(values.get()).toBe("a");
    await settle(new Error("no network"));
    expect(warnings).toHaveLength(1);
    expect([values.get(), values.get(), runs()]).toEqual(["a", "a", 2]);
    pass(5 * minute);
    const expired = expect(values.get()).rejects.toThrow("still no network");
    expect(runs()).toBe(3);
    await settle(new Error("still no network"));
    await expired;
    await expect(values.get()).rejects.toThrow("still no network");
    expect(runs()).toBe(3);
    pass(6000);
    const again = values.get();
    await settle("b");
    expect(await again).toBe("b");
  });

  test("a refusal renews it once; a server that refuses each one does not make it run for each request", async () => {
    const { values, runs, settle, pass } = renewed();
    void values.get();
    await settle("a");
    expect(values.refused()).toBe(true);
    const next = values.get();
    // Requests that were refused meanwhile wait for the same run.
    expect(values.refused()).toBe(true);
    await settle("b");
    expect(await next).toBe("b");
    expect([values.refused(), values.refused(), values.get(), runs()]).toEqual([false, false, "b", 2]);
    pass(minute);
    expect(values.refused()).toBe(true);
  });
});

describe("a token that a command prints", () => {
  const request = { method: "POST", origin: "https://a", path: "/", headers: {} };
  test.each([
    ["ab.c-_~1", { authorization: "Bearer ab.c-_~1" }],
    ["two words", /printed more than a token/],
    ["a\r\nx-injected: b", /printed more than a token/],
    ["", /printed more than a token/],
  ])("%j", async (output, expected) => {
    const token = commandToken({ command: ["tool"], expires: minute }, { name: "up", run: async () => output });
    const sent = (async () => token.authorize(request, chatSource))();
    if (!(expected instanceof RegExp)) return expect(await sent).toEqual(expected);
    const error: unknown = await sent.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(FailureError);
    expect((error as FailureError).failure).toMatchObject({ status: 503, message: expect.stringMatching(expected) });
    expect((error as FailureError).message).toContain("the upstream up");
  });
});
