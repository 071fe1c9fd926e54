/** The APIs of upstreams, by the names of their ports. */
export const sourceApis = ["chat", "responses", "messages"] as const;

export type SourceApi = (typeof sourceApis)[number];
