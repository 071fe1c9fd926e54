import { expect, test } from "vitest";
import { replaceFile } from "./replace-file.ts";

/** A rename that fails with these errors before it works, and counts. */
function failing(...codes: string[]): { move: () => Promise<void>; calls: () => number } {
  let calls = 0;
  return {
    async move() {
      const code = codes[calls++];
      if (code !== undefined) throw Object.assign(new Error(code), { code });
    },
    calls: () => calls,
  };
}

// A stored response was lost on Windows when a virus scanner had its file open.
test("a file that another program has open is replaced when it is closed, on Windows", async () => {
  const { move, calls } = failing("EPERM", "EBUSY", "EACCES");
  await replaceFile("a", "b", { platform: "win32", move, pauseMs: 0 });
  expect(calls()).toBe(4);
});

test("elsewhere, for other errors, and after ten tries, it fails with the system's error", async () => {
  const options = { pauseMs: 0 } as const;
  for (const [platform, codes, expected] of [
    ["linux", ["EPERM"], 1],
    ["win32", ["ENOSPC"], 1],
    ["win32", Array<string>(20).fill("EBUSY"), 10],
  ] as const) {
    const { move, calls } = failing(...codes);
    await expect(replaceFile("a", "b", { ...options, platform, move })).rejects.toThrow(codes[0]);
    expect(calls()).toBe(expected);
  }
});
