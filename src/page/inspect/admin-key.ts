const name = "truewire.admin-key";

/** The admin key that a person has entered, kept for this tab and no longer; "" for none. */
export function savedAdminKey(): string {
  return sessionStorage.getItem(name) ?? "";
}

export function saveAdminKey(key: string): void {
  if (key === "") sessionStorage.removeItem(name);
  else sessionStorage.setItem(name, key);
}
