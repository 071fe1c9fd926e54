import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Reads what `loop-monitor.ts` measures in a process. */
export class LoopDelay {
  readonly #file: string;
  readonly #pid: number;
  #reports = 0;

  constructor(folder: string, pid: number) {
    this.#file = join(folder, String(pid));
    this.#pid = pid;
  }

  /** The worst delay of the event loop since the last call, in milliseconds. */
  async worst(): Promise<number> {
    process.kill(this.#pid, "SIGUSR2");
    this.#reports++;
    for (;;) {
      const [reports, worst] = this.#read();
      if (reports === this.#reports) return worst;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** Collects the process's garbage; how many bytes of its heap are in use then. */
  async collect(): Promise<number> {
    const wish = `${this.#file}.collect`;
    writeFileSync(wish, "");
    await this.worst();
    rmSync(wish);
    return this.#read()[2];
  }

  /**
   * Processor time of the loop's thread, in milliseconds: the longest between two measurements before the last call of `worst`. Other
   * processes do not change it.
   */
  get work(): number {
    return this.#read()[3];
  }

  #read(): readonly [reports: number, worst: number, heap: number, work: number] {
    try {
      const [reports = "0", worst = "0", heap = "0", work = "0"] = readFileSync(this.#file, "utf8").split(" ");
      return [Number(reports), Number(worst), Number(heap), Number(work)];
    } catch {
      return [0, 0, 0, 0];
    }
  }
}
