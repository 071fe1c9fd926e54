/** The log line about calls that stayed text because the request does not have these tools; null where there were none. */
export function unknownToolsWarning(names: ReadonlySet<string>): string | null {
  if (names.size === 0) return null;
  const list = [...names].map(quoted).join(", ");
  return `The model called ${list}, which the request does not have as a tool; the call is left in the text.`;
}

/** A name as a model may have made it up, without characters that would steer a terminal. */
function quoted(name: string): string {
  return JSON.stringify(name).replace(/[\u007f-\u009f]/g, "\ufffd");
}
