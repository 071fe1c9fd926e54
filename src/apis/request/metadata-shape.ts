import type { z } from "zod";
import { anyObject } from "./shapes.ts";

/** An object. `checkMetadata` counts its members before it checks them, so that a million invalid ones cost little. */
export const metadataShape: z.ZodType<Record<string, unknown>> = anyObject();
