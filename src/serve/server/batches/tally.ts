import { isObject } from "../../../wire/core/json.ts";
import type { JsonObject } from "../../../wire/core/json.ts";
import type { BatchCounts, BatchUsage } from "../../../wire/apis/batches/form.ts";
import type { BatchProgress } from "./stored-batches.ts";

/** Counts the results of a batch, in the form of either API. */
export class Tally {
  readonly #counts = { completed: 0, failed: 0, cancelled: 0, expired: 0 };
  readonly #usage: { -readonly [Name in keyof BatchUsage]: number } = { input: 0, cached: 0, output: 0, reasoning: 0 };
  #total = 0;

  set total(total: number) {
    this.#total = total;
  }

  add(line: JsonObject): void {
    const { response, result, error } = line;
    const outcome = isObject(result) ? outcomes[String(result["type"])] : outcomeOf(response, error);
    this.#counts[outcome ?? "failed"]++;
    const answer = isObject(result) ? result["message"] : isObject(response) ? response["body"] : undefined;
    const usage = isObject(answer) ? answer["usage"] : undefined;
    if (!isObject(usage)) return;
    const details = [usage["prompt_tokens_details"], usage["input_tokens_details"], usage];
    const ofAnswer = [usage["completion_tokens_details"], usage["output_tokens_details"]];
    this.#usage.input += first([usage], "prompt_tokens", "input_tokens");
    this.#usage.output += first([usage], "completion_tokens", "output_tokens");
    this.#usage.cached += first(details, "cached_tokens", "cache_read_input_tokens");
    this.#usage.reasoning += first(ofAnswer, "reasoning_tokens");
  }

  progress(): BatchProgress {
    const counts: BatchCounts = { total: this.#total, ...this.#counts };
    return { counts, usage: { ...this.#usage } };
  }
}

type Outcome = Exclude<keyof BatchCounts, "total">;

/** Of Anthropic's results. */
const outcomes: Readonly<Record<string, Outcome>> = {
  succeeded: "completed",
  errored: "failed",
  canceled: "cancelled",
  expired: "expired",
};

function outcomeOf(response: unknown, error: unknown): Outcome {
  if (isObject(response)) return response["status_code"] === 200 ? "completed" : "failed";
  const code = isObject(error) ? error["code"] : undefined;
  return code === "batch_cancelled" ? "cancelled" : code === "batch_expired" ? "expired" : "failed";
}

/** The first number under one of the names in one of the objects; 0 without one. */
function first(objects: readonly unknown[], ...names: readonly string[]): number {
  for (const object of objects)
    for (const name of isObject(object) ? names : []) {
      const value = (object as JsonObject)[name];
      if (typeof value === "number") return value;
    }
  return 0;
}
