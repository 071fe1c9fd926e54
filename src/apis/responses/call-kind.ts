/** `search`: of tools, which the client makes. */
export type CallKind = "function" | "custom" | "search";

/** By kind, what the id of a call's item begins with. */
export const callPrefixes = { function: "fc_", custom: "ctc_", search: "tsc_" } as const;

/** The name under which a model calls the client's search for tools. A request gives it none. */
export const toolSearch = "tool_search";
