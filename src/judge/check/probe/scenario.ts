import type { Exchange } from "../rules/exchange.ts";
import type { GroupVerdict } from "../rules/group/group-rule.ts";
import type { ProfileName } from "../rules/profile/profile-rule.ts";
import { type Judged, judgedResult } from "./judged.ts";
import type { Probe, ProbeResult } from "./probe.ts";
import { send, type ProbeTarget } from "./send.ts";

/** Several requests that show something together. */
export interface Scenario {
  readonly id: string;
  readonly about: string;
  /** The API that it belongs to, as `--only` names it. */
  readonly api: string;
  run(steps: ScenarioSteps): Promise<readonly GroupVerdict[]>;
}

/** Sends the requests of a scenario, one after the other, and judges each as that of a probe. */
export class ScenarioSteps {
  readonly target: ProbeTarget;
  readonly signal: AbortSignal | undefined;
  /** The profile that is demanded. */
  readonly profile: ProfileName | undefined;
  readonly #judged: Judged[] = [];

  constructor(target: ProbeTarget, profile: ProfileName | undefined, signal: AbortSignal | undefined) {
    this.target = target;
    this.profile = profile;
    this.signal = signal;
  }

  /** What came back. */
  get judged(): readonly Judged[] {
    return this.#judged;
  }

  /** undefined: there was no answer. */
  async ask(probe: Probe): Promise<Exchange | undefined> {
    const result = await send(probe, this.target, this.signal);
    this.note(result);
    return result.exchange;
  }

  /** Judges an answer. Of several to the same question, those in which nothing is found make way for the next one. */
  note(result: ProbeResult): void {
    const last = this.#judged.at(-1);
    if (last?.id === result.probe.id && last.findings.length === 0) this.#judged.pop();
    this.#judged.push(judgedResult(result, this.profile));
  }
}
