import { repairMessageCapture } from "./messages/repair-capture.ts";
import { chatCaptures, completionCaptures, repairChoices } from "./repair-choices.ts";
import { repairResponseCapture } from "./responses/repair-capture.ts";
import type { CapturedApi, RepairedCapture, RepairOptions } from "./capture-form.ts";

type RepairOne = (capture: string, options: RepairOptions) => RepairedCapture;

const repairs: Readonly<Record<CapturedApi, RepairOne>> = {
  chat: (capture, options) => repairChoices(chatCaptures, capture, options),
  completions: (capture, options) => repairChoices(completionCaptures, capture, options),
  responses: repairResponseCapture,
  messages: repairMessageCapture,
};

/** The APIs whose captures can be repaired. */
export const capturedApis: readonly CapturedApi[] = Object.keys(repairs) as CapturedApi[];

/** Reads a captured answer, damaged in any way, and writes it again from its events. Pure. */
export function repairCapture(capture: string, options: RepairOptions): RepairedCapture {
  const { from } = options;
  return repairs[from === "auto" ? apiOfCapture(capture) : from](capture, options);
}

/** The API of a capture, by members that only its answers have. */
export function apiOfCapture(capture: string): CapturedApi {
  if (/"(type|object)"\s*:\s*"response(\.\w+)*"/.test(capture)) return "responses";
  if (/"type"\s*:\s*"(message_start|content_block_(start|delta)|message)"/.test(capture)) return "messages";
  return /"object"\s*:\s*"text_completion"/.test(capture) ? "completions" : "chat";
}
