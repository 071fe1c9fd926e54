/* The entry point of the processes that `limited-process.ts` starts. Its arguments are a module, and the most
 * resident memory in bytes where the system enforces no limit (0: none). */
import { watchProcess } from "./limit-memory.ts";
import { ignoreTerminalSignals } from "./terminal-signals.ts";

if (process.send === undefined) throw new Error("This module is started by Truewire itself, as a process of its own.");

const [module = "", maxResident] = process.argv.slice(2);
ignoreTerminalSignals();
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
watchProcess(maxResident === undefined ? undefined : Number(maxResident));
await import(module);
