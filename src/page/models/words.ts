import type { ModelState, PullState } from "../../judge/inspect/model-states.ts";

/** A number of bytes, as `truewire models list` writes it. */
export function bytesText(count: number): string {
  if (count < 2 ** 20) return `${(count / 2 ** 10).toFixed(0)} KiB`;
  return count < 2 ** 30 ? `${(count / 2 ** 20).toFixed(0)} MiB` : `${(count / 2 ** 30).toFixed(1)} GiB`;
}

export function numberText(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });
}

/** A time in milliseconds: `40 s`, `12 min`, `2 h`. */
export function durationText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 100) return `${seconds} s`;
  return seconds < 6000 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

/** `354 MiB of 844 MiB · 12 MiB/s · 40 s left`. */
export function pullText({ bytes, total_bytes: total, bytes_per_second: rate }: PullState): string {
  if (total === 0) return "Asking the hub…";
  const facts = [`${bytesText(bytes)} of ${bytesText(total)}`];
  if (rate !== undefined) facts.push(`${bytesText(rate)}/s`);
  if (rate !== undefined && rate > 0) facts.push(`${durationText((1000 * (total - bytes)) / rate)} left`);
  return facts.join(" · ");
}

/** The state of a model in words, and how it is to be marked. */
export function stateText(model: ModelState): {
  readonly text: string;
  readonly mark: "good" | "warning" | "error" | "";
} {
  const { state, kind, urls = [], progress, leaving } = model;
  const out = urls.filter(({ state: own }) => own !== "ready").length;
  if (state === "failed") return { text: kind === "upstream" ? "no answer" : "failed", mark: "error" };
  if (leaving) return { text: "unloading after its answers", mark: "warning" };
  if (progress) {
    const doing = progress.phase === "download" ? "downloading" : "loading";
    return { text: `${doing} ${Math.floor(progress.fraction * 100)} %`, mark: "warning" };
  }
  if (out > 0)
    return { text: `${out} of ${urls.length} URLs ejected`, mark: out === urls.length ? "error" : "warning" };
  if (state === "ready") return { text: kind === "local" ? "loaded" : "ready", mark: "good" };
  if (state === "unloaded") return { text: "not loaded", mark: "" };
  return { text: state, mark: "warning" };
}

export const kindNames: Readonly<Record<NonNullable<ModelState["kind"]>, string>> = {
  local: "Local model",
  upstream: "Server",
  program: "Program",
  engine: "Code",
};

/** A repository of the hub as the server expects it: accepts its address and `owner/repo`, too. */
export function repositoryName(text: string): string {
  const plain = text
    .trim()
    .replace(/^https:\/\/(?:huggingface\.co|hf\.co)\//, "")
    .replace(/\/(?:tree|blob|resolve)\/.*$/, "");
  return /^[\w.-]+\/[\w.-]+(?::[\w.-]+)?$/.test(plain) ? `hf:${plain}` : plain;
}

/** The entry of a downloaded model in `truewire.yaml`. */
export function configurationOf(model: string): string {
  const name = model.replace(/^hf:[^/]*\//i, "").replace(/:.*$/, "");
  return `models:\n  - kind: local\n    path: ${JSON.stringify(model)}\n    name: ${JSON.stringify(name)}\n    load: lazy\n`;
}
