import { expect, test } from "vitest";
import { knownFormats } from "../../src/text/formats/known.ts";
import { MarkerReader } from "../../src/text/formats/marker-reader.ts";
import { TextReader } from "../../src/text/formats/text-reader.ts";
import { growthOf, maxGrowth } from "../support/growth.ts";
import { dailyPart } from "../support/runs.ts";
import { textShapes } from "./shapes.ts";

// The CPU time of each format's reader grows linearly with what a model may write. Only a few formats had such a test, each for one text.

/** The texts that a format's description contains: its markers. */
function markersOf(format: unknown): string[] {
  const found = new Set<string>();
  const nodes: unknown[] = [format];
  for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
    if (typeof node === "string" && node.length > 1 && /[^\w\s-]/.test(node)) found.add(node);
    else if (typeof node === "object" && node !== null) nodes.push(...Object.values(node));
  }
  return [...found].slice(0, 6);
}

function measure(
  what: string,
  shapes: readonly (readonly [string, (size: number) => string])[],
  read: (pieces: readonly string[]) => unknown,
): void {
  const ratios = shapes.map(([name, shape]) => {
    const work = (size: number) => {
      const text = shape(size);
      const pieces = Array.from({ length: Math.ceil(text.length / 5) }, (_, at) => text.slice(at * 5, at * 5 + 5));
      return () => read(pieces);
    };
    return [name, growthOf(work)] as const;
  });
  const [worst] = ratios.toSorted(([, a], [, b]) => b - a);
  if (process.env["TRUEWIRE_GROWTH"] !== undefined)
    process.stdout.write(`${what}: ${ratios.length} shapes, worst ${worst?.[1].toFixed(1)} (${worst?.[0]})\n`);
  expect(ratios.filter(([, ratio]) => ratio > maxGrowth)).toEqual([]);
}

test.each(knownFormats.map((format, at) => [format.id, format, at] as const))("%s", (id, format, at) => {
  measure(`format ${id}`, dailyPart(Object.entries(textShapes(markersOf(format))), 6, at), (pieces) => {
    const reader = new TextReader({ format, choice: 0, newCallId: () => "call_1", stop: ["never"] });
    for (const piece of pieces) reader.push(piece);
    return reader.end();
  });
});

test("the format that is found by its markers", () => {
  const markers = [...new Set(knownFormats.flatMap((format) => markersOf(format).slice(0, 1)))].slice(0, 16);
  measure("marker reader", Object.entries(textShapes(markers)), (pieces) => {
    const reader = new MarkerReader({ choice: 0, newCallId: () => "call_1" });
    for (const piece of pieces) reader.push(piece);
    return reader.end();
  });
});

// With smaller inputs and fewer rounds, the measurement must still tell quadratic work from linear work.
test("work that takes quadratic time is found, and linear work is not", () => {
  const events = (size: number): string[] => Array.from({ length: size }, (_, at) => `x_${at}`);
  const quadratic: Record<string, (names: readonly string[]) => unknown> = {
    "an expression over everything so far": (names) => {
      let all = "";
      let matches = 0;
      for (const name of names) if (/^[^ ]*$/.test((all += name))) matches++;
      return matches;
    },
    "a queue that is filtered for each of its members": (names) => {
      let queue = [...names];
      for (const name of names) queue = queue.filter((one) => one !== name);
      return queue;
    },
  };
  for (const [name, run] of Object.entries(quadratic)) {
    const work = (size: number): (() => unknown) => {
      const names = events(size);
      return () => run(names);
    };
    expect(growthOf(work), name).toBeGreaterThan(maxGrowth);
  }
  const linear = (size: number): (() => unknown) => {
    const names = events(size);
    return () => JSON.parse(JSON.stringify(Object.fromEntries(names.map((name) => [name, [name]])))) as unknown;
  };
  expect(growthOf(linear)).toBeLessThan(maxGrowth);
});
