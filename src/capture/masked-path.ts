/** Parts of the names of members of a query that hold secrets: keys, tokens, passwords, signatures of URLs. */
const secretNames =
  /key|token|secret|sig|passw|pwd|auth|credential|session|jwt|cookie|(?:^|[-_])(?:code|sas|pass)(?:[-_]|$)/i;

/** A path without the secrets that some servers take in the query: recordings are given to others. */
export function maskedPath(path: string): string {
  return path.replace(/([?&])([^=&#]*)=([^&#]*)/g, (member, mark: string, name: string, value: string) =>
    value !== "" && secretNames.test(decoded(name)) ? `${mark}${name}=[key]` : member,
  );
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
