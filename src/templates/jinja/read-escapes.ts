/**
 * The value of a string literal, by Python's rules: an unknown escape stays as it is written. `fail` gets a description of an error.
 */
export function readEscapes(literal: string, fail: (problem: string) => never): string {
  if (!literal.includes("\\")) return literal;
  return literal.replace(escape, (written, octal?: string, hex?: string, letter = "") => {
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
    if (hex !== undefined) {
      const code = Number.parseInt(hex.slice(1), 16);
      if (hex.length - 1 !== digitsOf[hex.charAt(0)] || code > 0x10ffff)
        fail(`the escape '${written}' is not complete`);
      return String.fromCodePoint(code);
    }
    if (letter === "N") fail("escapes with a character's name (\\N) are not supported");
    return said[letter] ?? written;
  });
}

const escape = /\\(?:([0-7]{1,3})|(x[\da-fA-F]{0,2}|u[\da-fA-F]{0,4}|U[\da-fA-F]{0,8})|(.))/gs;

const digitsOf: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

const said: Readonly<Record<string, string>> = {
  "\n": "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};
