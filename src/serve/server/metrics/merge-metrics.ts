/** The metrics of one process of a server, in Prometheus' exposition format. */
export interface MetricsOfWorker {
  /** The number of the process, from 1. */
  readonly worker: number;
  readonly text: string;
}

/**
 * Puts the metrics of several processes into one text, each with the label `worker`. Nothing is summed: when a process is replaced, its
 * counters begin at 0, and Prometheus recognizes that for each series. Source: Prometheus' exposition format 0.0.4, in which the samples of
 * a metric follow its `# HELP` and `# TYPE` as one group.
 */
export function mergeMetrics(all: readonly MetricsOfWorker[]): string {
  /** The samples by the two lines of their metric. */
  const metrics = new Map<string, string[]>();
  for (const { worker, text } of all) {
    for (const metric of text.split(/^(?=# HELP )/m)) {
      const [help = "", type = "", ...samples] = metric.split("\n");
      if (help === "") continue;
      const head = `${help}\n${type}`;
      const labelled = samples.filter((line) => line !== "").map((line) => withLabel(line, `worker="${worker}"`));
      metrics.set(head, [...(metrics.get(head) ?? []), ...labelled]);
    }
  }
  return [...metrics].map(([head, samples]) => `${[head, ...samples].join("\n")}\n`).join("\n");
}

/** Names of metrics contain no brace; the first one opens the labels. The value of a label may contain spaces and braces. */
function withLabel(sample: string, label: string): string {
  const at = sample.search(/[{ ]/);
  const name = sample.slice(0, at);
  return sample[at] === "{" ? `${name}{${label},${sample.slice(at + 1)}` : `${name}{${label}}${sample.slice(at)}`;
}
