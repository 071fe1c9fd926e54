/** A key that a person has entered, kept for this tab and no longer. */
export class SavedKey {
  readonly #name: string;

  /** `name`: in the tab's storage. */
  constructor(name: string) {
    this.#name = name;
  }

  /** "" if no key is saved. */
  get value(): string {
    return sessionStorage.getItem(this.#name) ?? "";
  }

  set value(key: string) {
    if (key === "") sessionStorage.removeItem(this.#name);
    else sessionStorage.setItem(this.#name, key);
  }
}

/** Of a client of the API. */
export const clientKey: SavedKey = new SavedKey("truewire.key");
/** The admin key. */
export const adminKey: SavedKey = new SavedKey("truewire.admin-key");
