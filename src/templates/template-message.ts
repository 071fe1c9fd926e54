/** A message in the shape that chat templates read: OpenAI's, without null members. */
export interface TemplateMessage {
  readonly role: string;
  readonly [member: string]: unknown;
}
