import type { OpenOptions } from "../app/open-options.ts";

const width = 30;

/** A bar on stderr while models load; undefined when stderr is not a terminal. */
export function openProgressBar(): { show: NonNullable<OpenOptions["onProgress"]>; close(): void } | undefined {
  if (!process.stderr.isTTY) return undefined;
  return {
    show(name, { phase, fraction }) {
      const done = Math.round(fraction * width);
      const bar = "█".repeat(done) + "░".repeat(width - done);
      const percent = `${Math.round(fraction * 100)}%`.padStart(4);
      process.stderr.write(`\r\u001B[K${phase === "load" ? "loading" : "downloading"} ${name} ${bar}${percent}`);
    },
    close() {
      process.stderr.write("\r\u001B[K");
    },
  };
}
