/**
 * The profiles that `truewire check --profile` accepts. `lean`: one member per delta, nothing repeated, compact JSON; `truewire serve` sends
 * it by default. `exact`: the bytes of api.openai.com as recorded since August 2025, and of api.anthropic.com since May 2026.
 */
export type ProfileName = "lean" | "exact";
