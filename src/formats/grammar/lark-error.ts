/** A Lark grammar that is malformed, or uses what no grammar here can express. The message names the construct. */
export class LarkError extends Error {
  override readonly name = "LarkError";
}
