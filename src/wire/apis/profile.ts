/**
 * The two forms of answers, for every API. Both are data for the same readers and writers: each API has a table of its own, by the profile's
 * name. Members that all APIs share are here.
 */
export interface Profile {
  readonly name: "lean" | "exact";
  /** Refuses what the vendor refuses, with the vendor's messages. `lean` serves such a request with a warning, and has its own messages. */
  readonly judgesAsVendor: boolean;
  /** Also refuses what a server that a request is forwarded to would: it is the vendor itself. */
  readonly isVendor?: true;
  /** Answers contain the dated form of a model's id. */
  readonly resolvesModels: boolean;
  /** The error for an unknown model lists the available ones. */
  readonly listsModels: boolean;
}

/** One member per delta, nothing repeated: the form that most clients can read. The default. */
export const lean: Profile = { name: "lean", judgesAsVendor: false, resolvesModels: false, listsModels: true };

/** The vendor's bytes, as recorded in 2025 and 2026. */
export const exact: Profile = { name: "exact", judgesAsVendor: true, resolvesModels: true, listsModels: false };

/** A profile by its name. `openai` is the older name of `exact`. */
export function profileNamed(name: string): Profile | undefined {
  return name === "openai" ? exact : [lean, exact].find((profile) => profile.name === name);
}

/**
 * The headers of a stream in profile `lean`, for all APIs: an event stream that is not cached, and that reverse proxies such as nginx do not
 * buffer.
 */
export const unbufferedStream: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
};
