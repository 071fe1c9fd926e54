/** The API as a fetch handler for runtimes without Node (`truewire/fetch`). */
export { createFetchHandler } from "./app/open-handler.ts";
export type { EmbeddedHandler, HandlerOptions } from "./app/open-handler.ts";
