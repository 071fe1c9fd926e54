/** The JSON of each event of an answer of the admin API, as it comes. Rejects when the connection breaks. */
export async function* readEvents(response: Response): AsyncGenerator<unknown> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const chunk = await reader?.read();
    if (!chunk || chunk.done) return;
    text += decoder.decode(chunk.value, { stream: true });
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) if (event.startsWith("data: ")) yield JSON.parse(event.slice("data: ".length));
  }
}
