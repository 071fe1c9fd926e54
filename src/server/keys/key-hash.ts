/** SHA-256 of a text, in lower-case hexadecimal digits. */
export async function hashOf(text: string): Promise<string> {
  let digits = "";
  for (const byte of new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))))
    digits += byte.toString(16).padStart(2, "0");
  return digits;
}
