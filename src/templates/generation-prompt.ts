/** What a text has beyond the beginning that it shares with another. */
export function added(open: string, whole: string): string {
  let length = 0;
  while (length < open.length && open[length] === whole[length]) length++;
  return whole.slice(length);
}

/**
 * A conversation's text with generation prompt, and what of it the template adds for the assistant's answer. `place` is a character that occurs nowhere.
 *
 * Some templates end a conversation without generation prompt by the EOS token instead, which may begin as the generation prompt
 * does; so that the two are told apart, EOS is then `place` for a moment.
 */
export function addedForAnswer(
  render: (variables: Readonly<Record<string, unknown>>) => string,
  place: string,
): { readonly text: string; readonly added: string } {
  const open = render({ add_generation_prompt: false });
  const text = render({ add_generation_prompt: true });
  if (text.startsWith(open)) return { text, added: text.slice(open.length) };
  const otherwise = render({ add_generation_prompt: false, eos_token: place });
  return { text, added: added(otherwise, render({ add_generation_prompt: true, eos_token: place })) };
}
