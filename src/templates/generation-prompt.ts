/** The rest of `whole` after the beginning that it shares with `open`. */
export function added(open: string, whole: string): string {
  let length = 0;
  while (length < open.length && open[length] === whole[length]) length++;
  return whole.slice(length);
}

/**
 * A conversation's text with generation prompt, and the part of it that the template adds for the assistant's answer. `place` is a
 * character that occurs nowhere else.
 *
 * Without generation prompt, some templates end with the EOS token, which may begin with the same characters as the generation prompt.
 * To tell the two apart, such a template is rendered again with `place` as EOS.
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
