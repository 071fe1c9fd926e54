import { ModelOpenError } from "../model-open-error.ts";
import type { Koffi } from "./c-api/structs.ts";

/** What calls functions of native libraries; it is installed with Truewire where there is one for the platform. */
export async function importKoffi(): Promise<Koffi> {
  try {
    return (await import("koffi")).default;
  } catch (cause) {
    throw new ModelOpenError(
      "library-missing",
      "Local models need the package koffi, which is not installed here or not made for this platform: npm install koffi@3.3.4",
      cause,
    );
  }
}
