const name = "truewire.key";

/** The key that a person has entered, kept for this tab and no longer; "" for none. */
export function savedKey(): string {
  return sessionStorage.getItem(name) ?? "";
}

export function saveKey(key: string): void {
  if (key === "") sessionStorage.removeItem(name);
  else sessionStorage.setItem(name, key);
}
