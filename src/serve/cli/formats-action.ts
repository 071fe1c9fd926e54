import { knownFormats } from "../../text/formats/known.ts";
import type { Format } from "../../text/formats/format.ts";
import { writeCall } from "../../text/formats/write-call.ts";

const sample = { name: "get_weather", arguments: { city: "Paris" } };

/** The output of `truewire formats`. */
export function listFormats(asJson: boolean): string {
  if (asJson) return `${JSON.stringify(knownFormats, null, 2)}\n`;
  const width = Math.max(...knownFormats.map(({ id }) => id.length)) + 2;
  return knownFormats.map((format) => describe(format, width)).join("");
}

function describe(format: Format, width: number): string {
  const reasoning = sampleReasoning(format);
  const call = writeCall(format, sample);
  const lines = [reasoning, call].filter((line) => line !== null);
  if (lines.length === 0) lines.push("no calls, no reasoning: all is content");
  if (format.aliases) lines.push(`also called ${format.aliases.join(", ")}`);
  return lines.map((line, i) => `${(i === 0 ? format.id : "").padEnd(width)}${shown(line)}\n`).join("");
}

/** Returns an example of reasoning between its markers, or `null` if the format has no reasoning. */
function sampleReasoning(format: Format): string | null {
  if (format.kind === "plain") {
    const { reasoning } = format;
    return reasoning ? `${reasoning.open[0]}…${reasoning.close[0]}` : null;
  }
  const route = format.routes.find(({ to }) => to === "reasoning");
  return route?.write ? `${route.write[0]}${format.headerEnd}…${format.ends[0] ?? ""}` : null;
}

/** On one line, as in a string. */
function shown(text: string): string {
  return text.replaceAll("\n", "\\n");
}
