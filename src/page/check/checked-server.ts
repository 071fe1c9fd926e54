import type { CheckEvent, ShownJudgement, Judgement, Report } from "../../judge/check/report/report.ts";
import { reportSummary } from "../../judge/check/report/report.ts";
import { AdminRefusal, askAdmin, messageIn, readEvents } from "../api/call-api.ts";
import { announcement, Changing } from "../parts/changing.ts";

/** What is asked of every server that is checked. */
export interface CheckSettings {
  /** An API; "": all. */
  readonly only: string;
  /** "": any legal form. */
  readonly profile: string;
}

/** A server that is checked, and the results so far. Its key is kept in this object only and is not stored. */
export class CheckedServer extends Changing {
  readonly id: number;
  url: string;
  key = "";
  /** "": the first that the server lists. */
  model = "";
  state: "new" | "running" | "done" | "stopped" | "failed" = "new";
  /** Why it cannot be checked, in words. */
  problem = "";
  /** This page's own server wants an admin key, or another one. */
  adminKeyNeeded = false;
  done = 0;
  all = 0;
  about = "";
  /** By their probes. */
  judgements: ReadonlyMap<string, ShownJudgement> = new Map();
  report: Report | undefined;
  #running: AbortController | undefined;

  constructor(id: number, url: string) {
    super();
    this.id = id;
    this.url = url;
  }

  set(values: Partial<Pick<CheckedServer, "url" | "key" | "model">>): void {
    Object.assign(this, values);
    this.changed();
  }

  stop(): void {
    this.#running?.abort();
  }

  async check({ only, profile }: CheckSettings): Promise<void> {
    const { url, key, model } = this;
    const controller = new AbortController();
    this.#running = controller;
    Object.assign(this, { state: "running", problem: "", adminKeyNeeded: false, done: 0, all: 0, about: "" });
    this.report = undefined;
    this.judgements = new Map();
    this.changed();
    announcement.say(`Checking ${url}.`);
    const body = {
      url: url.trim(),
      ...(key.trim() !== "" && { key: key.trim() }),
      ...(model.trim() !== "" && { model: model.trim() }),
      ...(only !== "" && { only: [only] }),
      ...(profile !== "" && { profile }),
    };
    try {
      const response = await askAdmin("check", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
        signal: controller.signal,
      });
      for await (const event of readEvents(response)) this.#take(event as CheckEvent);
      if (this.state === "running") this.#fail("The server ended the check.");
    } catch (error) {
      if (controller.signal.aborted) this.state = "stopped";
      else if (error instanceof AdminRefusal) this.#fail(error.message, error.status === 401);
      else this.#fail("The server that this page is from cannot be reached.");
      this.changed();
    }
    announcement.say(this.report ? `Checked ${url}: ${reportSummary(this.report)}.` : this.problem || "Stopped.");
  }

  #take(event: CheckEvent | { readonly type: "error" }): void {
    if (event.type === "progress") {
      const { done, all, about } = event;
      Object.assign(this, { done, all, about });
      const more = event.judgements.map((judgement) => [judgement.id, judgement] as const);
      this.judgements = new Map([...this.judgements, ...more]);
    } else if (event.type === "done") {
      const judgements = [...this.judgements.values()].map((judgement): Judgement => ({ ...judgement, shown: [] }));
      this.report = { ...event.report, judgements };
      this.state = "done";
    } else this.#fail(messageIn(event) ?? "The check failed.");
    this.changed();
  }

  #fail(message: string, adminKeyNeeded = false): void {
    Object.assign(this, { state: "failed", problem: message, adminKeyNeeded });
    this.changed();
  }
}
