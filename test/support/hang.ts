import { availableParallelism, loadavg } from "node:os";

/** By how much longer everything takes where other programs keep the machine busy: the tests alone keep two processes ready for each core. */
const busy = Math.max(1, (loadavg()[0] ?? 0) / (2 * availableParallelism()));

/**
 * When something is taken for hung, in milliseconds. It is the only time-out of the tests: how long a step takes says nothing on a machine
 * that is busy with other programs, where a second of work takes half a minute.
 */
export const hangMs: number = Math.round(180_000 * busy);

/** For waits inside a test: ends before the test does, so that the report names what was waited for. */
export const waitMs: number = hangMs / 2;

/**
 * Runs `work` and returns the CPU time that this process spent meanwhile, in milliseconds. Unlike elapsed time, it does not grow when other
 * processes use the machine.
 */
export function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
