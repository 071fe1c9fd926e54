import type { z } from "zod";
import { anyObject } from "./shapes.ts";

/** Only an object: its members are counted before they are looked at (`checkMetadata`), since a million wrong ones are one mistake. */
export const metadataShape: z.ZodType<Record<string, unknown>> = anyObject();
