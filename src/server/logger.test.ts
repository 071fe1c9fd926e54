import { expect, test } from "vitest";
import { forPeople } from "./logger.ts";

/** Colours are the terminal's business. */
function plain(line: string): string {
  // oxlint-disable-next-line no-control-regex -- colours are control sequences
  return line.replaceAll(/\u001B\[\d+m/g, "");
}

test("a line for people: time, what happened, the request, then the rest", () => {
  const time = new Date(2026, 0, 2, 3, 4, 5).getTime();
  const line = JSON.stringify({
    level: 30,
    time,
    msg: "finished",
    method: "POST",
    path: "/v1/x",
    status: 200,
    model: "m",
  });
  expect(plain(forPeople(line))).toBe("03:04:05 finished POST /v1/x status=200 model=m\n");
});

test("what a client made up cannot steer the terminal; a cause keeps its lines", () => {
  const line = JSON.stringify({ level: 50, time: 0, msg: "failed", error: "\u001B[2Jgone\n", cause: "Error\n  at x" });
  expect(plain(forPeople(line))).toContain(" error=\\u001b[2Jgone\\u000a cause=Error\n  at x\n");
});

// Once, only the fields were looked through, though a message may quote what a model wrote.
test("a message cannot steer the terminal either, and keeps its lines", () => {
  const line = JSON.stringify({ level: 40, time: 0, msg: "it said \u009b2J\r\nand more" });
  expect(plain(forPeople(line))).toContain(" it said \\u009b2J\\u000d\nand more\n");
});
