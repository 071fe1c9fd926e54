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

  /** Collects the process's garbage. */
  async collect(): Promise<void> {
    const wish = `${this.#file}.collect`;
    writeFileSync(wish, "");
    await this.worst();
    rmSync(wish);
  }

  #read(): readonly [told: number, worst: number] {
    try {
      const [told = "0", worst = "0"] = readFileSync(this.#file, "utf8").split(" ");
      return [Number(told), Number(worst)];
    } catch {
      return [0, 0];
    }
  }
}
