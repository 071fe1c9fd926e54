import { chatCaptures, completionCaptures, repairChoices } from "./repair-choices.ts";
import type { RepairedCapture, RepairOptions } from "./repaired-capture.ts";

/** Reads a captured answer, however broken, and writes it anew: events in between, nothing copied. Pure. */
export function repairCapture(capture: string, options: RepairOptions): RepairedCapture {
  const { from } = options;
  const isChat = from === "auto" ? !/"object"\s*:\s*"text_completion"/.test(capture) : from === "chat";
  return repairChoices(isChat ? chatCaptures : completionCaptures, capture, options);
}
