/** One line of Prometheus' exposition format. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Exposition {
  /** Metric → type, of the lines `# TYPE`. */
  readonly types: ReadonlyMap<string, string>;
  readonly samples: readonly Sample[];
}

/** Reads the text that Prometheus reads. Throws for a line that is none of its. Source: Prometheus, "Text-based format", version 0.0.4. */
export function readExposition(text: string): Exposition {
  if (!text.endsWith("\n")) throw new Error("the last line does not end in a line feed");
  const types = new Map<string, string>();
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const [, typed, type] = /^# TYPE ([a-zA-Z_:][\w:]*) (counter|gauge|histogram)$/.exec(line) ?? [];
    if (typed && type) {
      if (types.has(typed)) throw new Error(`${typed} is there twice`);
      types.set(typed, type);
    } else if (!/^# HELP [a-zA-Z_:][\w:]* \S/.test(line)) samples.push(readSample(line));
  }
  return { types, samples };
}

function readSample(line: string): Sample {
  const [, name = "", , labels = "", value = ""] = /^([a-zA-Z_:][\w:]*)(\{(.*)\})? (\S+)$/.exec(line) ?? [];
  if (name === "" || Number.isNaN(Number(value))) throw new Error(`not a sample: ${line}`);
  const pairs = [...labels.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/g)];
  if (pairs.map(([pair]) => pair).join("") !== labels) throw new Error(`labels that cannot be read: ${line}`);
  return {
    name,
    labels: Object.fromEntries(pairs.map(([, label = "", text = ""]) => [label, text])),
    value: Number(value),
  };
}

/** The sum of the samples that have these labels. */
export function total({ samples }: Exposition, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const asked = Object.entries(labels);
  return samples
    .filter((sample) => sample.name === name && asked.every(([label, value]) => (sample.labels[label] ?? "") === value))
    .reduce((sum, { value }) => sum + value, 0);
}
