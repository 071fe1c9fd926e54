/** The numbers of one of a server's processes, as Prometheus reads them. */
export interface NumbersOfProcess {
  /** Stands in the label `worker` of what is not added up. */
  readonly worker: string;
  readonly text: string;
}

/** About a process itself: told for each. */
const ofProcess = /^(?:process|nodejs)_/;

/** What every process tells of the same engines and URLs: to add it up would count them several times. */
const ofAll: ReadonlySet<string> = new Set([
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
 * The numbers of all processes of a server as those of one: counts are added up, and what tells of a process itself gets the label
 * `worker`. Metrics and series are in the order in which they come first.
 */
export function mergeNumbers(all: readonly NumbersOfProcess[]): string {
  const families = new Map<string, Family>();
  for (const { worker, text } of all) {
    eachSample(text, families, (family, name, series, value) => {
      const key = ofProcess.test(name) ? withLabel(series, "worker", worker) : series;
      const before = family.values.get(key);
      if (before === undefined) family.values.set(key, value);
      else family.values.set(key, ofAll.has(name) ? Math.max(before, value) : before + value);
    });
  }
  return textOf(families.values());
}

/** What must not be lost with a process that ends: its counters and histograms, but for those about the process itself. */
export function lastingNumbers(text: string): string {
  const families = new Map<string, Family>();
  eachSample(text, families, (family, name, series, value) => {
    if (!family.isGauge && !ofProcess.test(name)) family.values.set(series, value);
  });
  return textOf([...families.values()].filter(({ values }) => values.size > 0));
}

/** Reads the text line by line; a metric's `# HELP` and `# TYPE` stand before its samples. Source: Prometheus' exposition format 0.0.4. */
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
      // A label's value may have blanks and braces; a sample's has none.
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
