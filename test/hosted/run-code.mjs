// A program for code_interpreter, which understands sums only, and some words that make it misbehave.
export const description = "Adds two numbers";

export default async function ({ arguments: { code }, signal }) {
  if (code === "block") for (;;) Math.sqrt(2);
  if (code === "hang")
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("stopped"))));
  if (code === "exit") process.exit(1);
  if (code === "throw") throw new Error("division by zero");
  if (code === "function") return { stdout: () => {} };
  const [a, b] = String(code).split("+").map(Number);
  return { stdout: String(a + b), stderr: "", returnCode: 0, images: ["data:image/png;base64,AAAA"] };
}
