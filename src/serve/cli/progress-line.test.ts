import { expect, test } from "vitest";
import { openProgressLine } from "./progress-line.ts";

function written(isTTY: boolean): string {
  let all = "";
  const line = openProgressLine({ isTTY, write: (text) => (all += text) });
  line.show({ text: "waiting for small" });
  for (let step = 0; step <= 100; step++)
    line.show({ text: `downloading small ${step} MiB of 100 MiB`, fraction: step / 100 });
  line.close();
  return all;
}

test("on a terminal one line is written over, and is gone in the end", () => {
  const all = written(true);
  expect(all).not.toContain("\n");
  expect(all).toContain(`downloading small 50 MiB of 100 MiB ${"█".repeat(15)}${"░".repeat(15)}  50%`);
  expect(all.endsWith("\r\u001B[K")).toBe(true);
});

test("elsewhere there is a line for every ten per cent", () => {
  const lines = written(false).split("\n");
  expect(lines.slice(0, 3)).toEqual(["waiting for small", "downloading small 0 %", "downloading small 10 %"]);
  expect(lines).toHaveLength(13);
});
