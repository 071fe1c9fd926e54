import type { HashedKey } from "../keys/key-ring.ts";

/** A key as the admin API shows it: everything but its hash. Members are those of `keys` in the configuration. */
export interface ShownKey extends Readonly<Record<string, unknown>> {
  /** The beginning of its hash. */
  readonly id: string;
  readonly name: string;
}

/** Changes keys while the server runs. Every method rejects with `FailureError`: 400 for settings, 404, 409 for a key of the configuration. */
export interface KeyControl {
  /** Creates a key. It is returned this once. */
  create(settings: object): Promise<{ readonly key: string; readonly entry: ShownKey }>;
  /** Replaces settings of a key; `null` removes one. */
  change(id: string, settings: object): Promise<ShownKey>;
  revoke(id: string): Promise<ShownKey>;
  /** The settings of a key that was created here. */
  shown(key: HashedKey): ShownKey | undefined;
}

/** The id of a key: 64 bits of its hash, which say nothing about the key. */
export function keyId(hash: string): string {
  return hash.slice(0, 16);
}
