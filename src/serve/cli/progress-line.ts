const width = 30;

/** What is written to: stderr. */
export interface Output {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** One line that is written over on a terminal; elsewhere, a line for each step of ten per cent and each new text. */
export function openProgressLine(output: Output): {
  show(progress: { readonly text: string; readonly fraction?: number }): void;
  close(): void;
} {
  let shown = "";
  return {
    show({ text, fraction }) {
      if (output.isTTY === true) {
        output.write(`\r\u001B[K${text}${fraction === undefined ? "" : ` ${bar(fraction)}`}`);
        return;
      }
      const tenths = fraction === undefined ? "" : ` ${Math.floor(fraction * 10) * 10} %`;
      // Sizes change with every step; they are no new text.
      const line = text.replace(/ [\d.]+ [KMG]iB of .*/, "") + tenths;
      if (line !== shown) output.write(`${line}\n`);
      shown = line;
    },
    close() {
      if (output.isTTY === true) output.write("\r\u001B[K");
    },
  };
}

function bar(fraction: number): string {
  const done = Math.round(Math.min(1, fraction) * width);
  return `${"█".repeat(done)}${"░".repeat(width - done)}${`${Math.floor(fraction * 100)}%`.padStart(5)}`;
}
