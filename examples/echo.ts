// The smallest program: what the user said, word by word.
//   truewire serve ./examples/echo.ts
import { defineProgram } from "truewire";

export default defineProgram(async function* ({ messages }) {
  const last = messages.at(-1)?.content;
  const text = typeof last === "string" ? last : JSON.stringify(last);
  for (const word of text.split(/(?<=\s)/)) yield word;
});
