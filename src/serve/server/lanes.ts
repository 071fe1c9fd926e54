/** The limits of a connection's lanes. */
export interface LaneLimits {
  /** The maximum number of tasks that run. */
  readonly maxRunning: number;
  /** The maximum number of lanes with a name. */
  readonly maxLanes: number;
  /** The maximum number of tasks that wait, and of their bytes; one task of any size may wait. */
  readonly maxWaiting: number;
  readonly maxWaitingBytes: number;
}

interface Lane<Task> {
  readonly name: string | undefined;
  isRunning: boolean;
  readonly waiting: Waiting<Task>[];
}

interface Waiting<Task> {
  readonly task: Task;
  readonly bytes: number;
}

/**
 * Runs the tasks of each lane one after the other, in the order in which they were added, and those of different lanes in parallel. If
 * more lanes have tasks than may run, the lanes take turns. Pure: `start` is called when a task is to run.
 */
export class Lanes<Task> {
  readonly #limits: LaneLimits;
  readonly #start: (task: Task) => void;
  readonly #lanes = new Map<string | undefined, Lane<Task>>();
  /** Lanes that have a waiting task and run none, in the order of their turns. */
  readonly #ready: Lane<Task>[] = [];
  #running = 0;
  #waiting = 0;
  #waitingBytes = 0;

  constructor(limits: LaneLimits, start: (task: Task) => void) {
    this.#limits = limits;
    this.#start = start;
  }

  /** The number of tasks that run or wait. */
  get size(): number {
    return this.#running + this.#waiting;
  }

  /** Adds a task to a lane; `undefined` is the lane without a name. Returns why the task cannot be added. */
  add(name: string | undefined, task: Task, bytes: number): "too-many-lanes" | "too-many-waiting" | null {
    const { maxRunning, maxLanes, maxWaiting, maxWaitingBytes } = this.#limits;
    const known = this.#lanes.get(name);
    const named = this.#lanes.size - (this.#lanes.has(undefined) ? 1 : 0);
    if (!known && name !== undefined && named >= maxLanes) return "too-many-lanes";
    const mustWait = known?.isRunning === true || this.#running >= maxRunning;
    const isFull = this.#waiting >= maxWaiting || (this.#waiting > 0 && this.#waitingBytes + bytes > maxWaitingBytes);
    if (mustWait && isFull) return "too-many-waiting";
    const lane = known ?? { name, isRunning: false, waiting: [] };
    this.#lanes.set(name, lane);
    lane.waiting.push({ task, bytes });
    this.#waiting++;
    this.#waitingBytes += bytes;
    if (!lane.isRunning && lane.waiting.length === 1) this.#ready.push(lane);
    this.#startReady();
    return null;
  }

  /** Called when the running task of a lane has ended. */
  finish(name: string | undefined): void {
    const lane = this.#lanes.get(name);
    if (!lane?.isRunning) return;
    lane.isRunning = false;
    this.#running--;
    if (lane.waiting.length > 0) this.#ready.push(lane);
    this.#startReady();
  }

  /** Removes the waiting tasks and returns them. */
  clear(): Task[] {
    this.#ready.length = 0;
    this.#waiting = 0;
    this.#waitingBytes = 0;
    return [...this.#lanes.values()].flatMap(({ waiting }) => waiting.splice(0).map(({ task }) => task));
  }

  #startReady(): void {
    while (this.#running < this.#limits.maxRunning) {
      const lane = this.#ready.shift();
      const next = lane?.waiting.shift();
      if (!lane || !next) return;
      lane.isRunning = true;
      this.#running++;
      this.#waiting--;
      this.#waitingBytes -= next.bytes;
      this.#start(next.task);
    }
  }
}
