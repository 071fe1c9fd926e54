/**
 * The two forms of the wire. Both are data for the same writers; nothing else differs between them.
 *
 * - `lean`: one field per delta, nothing repeated; what clients in the field survive best. The default.
 * - `openai`: the bytes of api.openai.com as recorded in 2025 and 2026.
 */
export interface Profile {
  readonly name: "lean" | "openai";
}

export const lean: Profile = { name: "lean" };
export const openai: Profile = { name: "openai" };
