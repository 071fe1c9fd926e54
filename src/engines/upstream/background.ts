/** A timer that does not keep a process alive, where the runtime has processes: elsewhere timers are numbers. */
export function inBackground(timer: NodeJS.Timeout): NodeJS.Timeout {
  if (typeof timer === "object") timer.unref();
  return timer;
}
