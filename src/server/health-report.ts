import type { EngineHealth } from "../core/engine.ts";

/** How one process is, or several of one server together. */
export interface HealthReport {
  readonly state: "loading" | "ready" | "closing";
  readonly engines: readonly EngineReport[];
  readonly requests: RequestCounts;
}

export interface EngineReport extends EngineHealth {
  readonly name: string;
  readonly models: readonly string[];
}

export interface RequestCounts {
  readonly open: number;
  readonly total: number;
  readonly cancelled: number;
  readonly failed: number;
}
