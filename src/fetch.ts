/** The API as a fetch handler for runtimes without Node (`truewire/fetch`). */
export { createFetchHandler } from "./serve/app/open-handler.ts";
export type { EmbeddedHandler, HandlerOptions } from "./serve/app/open-handler.ts";
