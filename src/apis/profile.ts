/**
 * The two forms of the wire, for every API. Both are data for the same readers and writers: each API looks up in a table of its own,
 * by the profile's name, what its bytes look like; what all of them share stands here.
 */
export interface Profile {
  readonly name: "lean" | "exact";
  /** What the vendor refuses is refused, though it could be served, and in its words; `lean` serves it and warns, and says what this server wants. */
  readonly judgesAsVendor: boolean;
  /** Answers name the dated form of a model's id, where there is one. */
  readonly resolvesModels: boolean;
  /** The error for an unknown model lists those that there are. */
  readonly listsModels: boolean;
}

/** One field per delta, nothing repeated; what clients in the field survive best. The default. */
export const lean: Profile = { name: "lean", judgesAsVendor: false, resolvesModels: false, listsModels: true };

/** The vendor's bytes, as recorded in 2025 and 2026. */
export const exact: Profile = { name: "exact", judgesAsVendor: true, resolvesModels: true, listsModels: false };

/** A profile by its name. `openai` is the older name of `exact`. */
export function profileNamed(name: string): Profile | undefined {
  return name === "openai" ? exact : [lean, exact].find((profile) => profile.name === name);
}
