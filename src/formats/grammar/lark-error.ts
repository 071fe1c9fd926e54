/** A Lark grammar that is malformed, or uses an unsupported construct, which the message names. */
export class LarkError extends Error {
  override readonly name = "LarkError";
}
