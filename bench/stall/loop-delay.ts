import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Reads what `loop-monitor.ts` measures in a process. */
export class LoopDelay {
  readonly #file: string;
  readonly #pid: number;
  #told = 0;

  constructor(folder: string, pid: number) {
    this.#file = join(folder, String(pid));
    this.#pid = pid;
  }

  /** The worst delay of the event loop since the last call, in milliseconds. */
  async worst(): Promise<number> {
    process.kill(this.#pid, "SIGUSR2");
    this.#told++;
    for (;;) {
      const [told, worst] = this.#read();
      if (told === this.#told) return worst;
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
   * The longest work between two looks at the last time that `worst` asked: processor time of the loop's thread in milliseconds, whatever
   * else the machine did.
   */
  get work(): number {
    return this.#read()[3];
  }

  #read(): readonly [told: number, worst: number, heap: number, work: number] {
    try {
      const [told = "0", worst = "0", heap = "0", work = "0"] = readFileSync(this.#file, "utf8").split(" ");
      return [Number(told), Number(worst), Number(heap), Number(work)];
    } catch {
      return [0, 0, 0, 0];
    }
  }
}
