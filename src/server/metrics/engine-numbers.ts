import { Counter, Gauge } from "prom-client";
import type { Registry } from "prom-client";
import type { EngineHealth } from "../../core/engine.ts";
import type { ServedEngine } from "../model-directory.ts";

interface EngineNumber {
  readonly metric: Gauge<"engine"> | Counter<"engine">;
  /** undefined: this kind of engine has no such number. */
  readonly of: (health: EngineHealth) => number | undefined;
}

/** What engines tell of themselves, asked of them when somebody reads it. */
export class EngineNumbers {
  readonly #numbers: readonly EngineNumber[];

  constructor(registry: Registry) {
    const gauge = (name: string, help: string, of: EngineNumber["of"]): EngineNumber => ({
      metric: new Gauge({ name, help, labelNames: ["engine"], registers: [registry] }),
      of,
    });
    const counter = (name: string, help: string, of: EngineNumber["of"]): EngineNumber => ({
      metric: new Counter({ name, help, labelNames: ["engine"], registers: [registry] }),
      of,
    });
    this.#numbers = [
      gauge("truewire_engine_ready", "1: the engine can answer.", ({ state }) => (state === "ready" ? 1 : 0)),
      gauge("truewire_slots", "Answers that can be generated at once.", ({ slots }) => slots?.total),
      gauge("truewire_slots_busy", "Answers that are being generated.", ({ slots }) => slots?.busy),
      gauge("truewire_queue_length", "Requests that wait for a slot.", ({ queued }) => queued),
      counter("truewire_restarts_total", "How often a local model's process was started again.", counted("restarts")),
      counter(
        "truewire_drafted_tokens_total",
        "Tokens that a local model guessed before it drew them.",
        counted("draftedTokens"),
      ),
      counter("truewire_accepted_tokens_total", "How many of these guesses were right.", counted("acceptedTokens")),
      gauge(
        "truewire_upstream_open_requests",
        "Requests that another server has not answered.",
        counted("outstanding"),
      ),
      counter(
        "truewire_upstream_retries_total",
        "Requests to other servers that were tried again.",
        counted("retries"),
      ),
      gauge("truewire_upstream_urls", "The URLs of an upstream.", counted("targets")),
      gauge(
        "truewire_upstream_urls_ejected",
        "Those that get no requests, because they failed.",
        ({ counters = {} }) => {
          const { targets, targetsInService } = counters;
          return targets === undefined || targetsInService === undefined ? undefined : targets - targetsInService;
        },
      ),
    ];
  }

  refresh(engines: readonly ServedEngine[]): void {
    for (const { metric } of this.#numbers) metric.reset();
    for (const { name, engine } of engines) {
      const health = engine.health();
      for (const { metric, of } of this.#numbers) {
        const value = of(health);
        if (value !== undefined) metric.inc({ engine: name }, value);
      }
    }
  }
}

function counted(name: string): EngineNumber["of"] {
  return ({ counters }) => counters?.[name];
}
