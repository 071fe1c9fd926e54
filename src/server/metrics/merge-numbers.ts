/** The metrics of one process of a server, in Prometheus' exposition format. */
export interface NumbersOfProcess {
  /** The value of the label `worker` for metrics that are not summed. */
  readonly worker: string;
  readonly text: string;
}

/** Metrics of a process, which are not summed. */
const ofProcess = /^(?:process|nodejs)_/;

/** Metrics that every process reports about the same engines and URLs: the maximum is used. */
const shared: ReadonlySet<string> = new Set([
  "truewire_engine_ready",
  "truewire_slots",
  "truewire_slots_busy",
  "truewire_queue_length",
  "truewire_restarts_total",
  "truewire_upstream_urls",
  "truewire_upstream_urls_ejected",
]);

interface Family {
  readonly head: readonly string[];
  readonly isGauge: boolean;
  readonly values: Map<string, number>;
}

/**
 * Merges the metrics of all processes of a server: counts are summed, and metrics of a process get the label `worker`. Metrics and series
 * are in the order of their first occurrence.
 */
export function mergeNumbers(all: readonly NumbersOfProcess[]): string {
  const families = new Map<string, Family>();
  for (const { worker, text } of all) {
    eachSample(text, families, (family, name, series, value) => {
      const key = ofProcess.test(name) ? withLabel(series, "worker", worker) : series;
      const before = family.values.get(key);
      if (before === undefined) family.values.set(key, value);
      else family.values.set(key, shared.has(name) ? Math.max(before, value) : before + value);
    });
  }
  return textOf(families.values());
}

/** The metrics that are kept when a process ends: its counters and histograms, except those of the process itself. */
export function lastingNumbers(text: string): string {
  const families = new Map<string, Family>();
  eachSample(text, families, (family, name, series, value) => {
    if (!family.isGauge && !ofProcess.test(name)) family.values.set(series, value);
  });
  return textOf([...families.values()].filter(({ values }) => values.size > 0));
}

/** Reads the text line by line. A metric's `# HELP` and `# TYPE` precede its samples. Source: Prometheus' exposition format 0.0.4. */
function eachSample(
  text: string,
  families: Map<string, Family>,
  take: (family: Family, name: string, series: string, value: number) => void,
): void {
  let name = "";
  let help = "";
  let family: Family | undefined;
  for (const line of text.split("\n")) {
    if (line.startsWith("# HELP ")) help = line;
    else if (line.startsWith("# TYPE ")) {
      const [, , named = "", type] = line.split(" ");
      name = named;
      family = families.get(name);
      if (!family) families.set(name, (family = { head: [help, line], isGauge: type === "gauge", values: new Map() }));
    } else if (family && line !== "") {
      // The value of a label may contain spaces and braces; the value of a sample may not.
      const at = line.lastIndexOf(" ");
      take(family, name, line.slice(0, at), Number(line.slice(at + 1)));
    }
  }
}

function withLabel(series: string, label: string, value: string): string {
  const at = series.indexOf("{");
  const added = `${label}="${value}"`;
  return at === -1 ? `${series}{${added}}` : `${series.slice(0, at)}{${added},${series.slice(at + 1)}`;
}

function textOf(families: Iterable<Family>): string {
  let text = "";
  for (const { head, values } of families) {
    text += `${head.join("\n")}\n`;
    for (const [series, value] of values) text += `${series} ${value}\n`;
    text += "\n";
  }
  return text;
}
