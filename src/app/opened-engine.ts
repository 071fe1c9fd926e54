import type { ServedEngine } from "../server/model-directory.ts";

/** An engine, and to which APIs it passes requests on. */
export type OpenedEngine = Pick<ServedEngine, "engine" | "forwards">;
