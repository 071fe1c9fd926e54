import { knownFormats } from "../formats/known.ts";
import type { Format } from "../formats/format.ts";
import { writeCall } from "../formats/write-call.ts";

const sample = { name: "get_weather", arguments: { city: "Paris" } };

/** The output of `truewire formats`. */
export function listFormats(asJson: boolean): string {
  if (asJson) return `${JSON.stringify(knownFormats, null, 2)}\n`;
  const width = Math.max(...knownFormats.map(({ id }) => id.length)) + 2;
  return knownFormats.map((format) => describe(format, width)).join("");
}

function describe(format: Format, width: number): string {
  const { reasoning } = format;
  const lines = [
    ...(reasoning ? [`${reasoning.open[0]}…${reasoning.close[0]}`] : []),
    writeCall(format, sample) ?? (reasoning ? "" : "no calls, no reasoning: all is content"),
  ].filter((line) => line !== "");
  return lines.map((line, i) => `${(i === 0 ? format.id : "").padEnd(width)}${shown(line)}\n`).join("");
}

/** On one line, as in a string. */
function shown(text: string): string {
  return text.replaceAll("\n", "\\n");
}
