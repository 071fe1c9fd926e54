import { defineProgram } from "truewire";

/** As `pageSize` of the tests. */
const size = Number(process.env.TRUEWIRE_PAGE_SIZE ?? 1);
const deep = 20_000 * size;

/** Shapes of formulas that would take long, or would load something. */
const hostileFormulas = [
  "\\def\\a{xx}\\def\\b{\\a\\a}\\b",
  "\\href{javascript:globalThis.ran=1}{x}",
  "\\includegraphics{https://evil.example/x.png}",
  "\\htmlData{x=1}{y}",
  `${"\\sqrt{".repeat(500)}x${"}".repeat(500)}`,
  `${"{x}^{".repeat(700)}x${"}".repeat(700)}`,
  `${"\\left(".repeat(500)}x${"\\right)".repeat(500)}`,
  "\\rule{9999em}{9999em}",
  "\\hspace{9999em}x",
  "\\begin{matrix}".repeat(100),
  "x".repeat(50_000),
];

/** Answers by name. A hostile one would run a script (`globalThis.ran`), load something, or keep the page busy. */
const texts = {
  sample: `# Sorting

A *short* answer with **bold**, ~~old~~ and \`sorted()\`, [the docs](https://docs.example.com/sorted?x=1) and https://example.com/a_b_c.

1. Read the list
   - [x] from a file
   - [ ] from standard input
2. Sort it

   \`\`\`py
   def sort(items: list[int]) -> list[int]:
       return sorted(items)  # ascending
   \`\`\`

| Name | Age |
|:-----|----:|
| Ada | **36** |

> Quoted
> > twice

Prices are $5 and $10; $x_1 * y * z_2$ and \\(a_b*c*d\\) are math.

\\[
x =
- \\frac{a}{b}
=
\\]

\`\`\`brainfuck
+++[>+<-]
\`\`\`
`,
  formulas: `The roots are $x_{1,2} = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}$, for \\(a \\ne 0\\) and $5 or $6.

$$
\\int_{-\\infty}^{\\infty} e^{-x^2}\\,dx = \\sqrt{\\pi}
$$

\\[ A = \\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}, \\quad \\ce{2H2 + O2 -> 2H2O}, \\quad \\cancel{x} \\boxed{42} \\overline{AB} \\]

- In a list: $$\\sum_{i=1}^{n} i = \\frac{n(n+1)}{2}$$ and $\\nosuchcommand{x}$.

Open: $$x + y`,
  "hostile-formulas": hostileFormulas.map((tex) => `$${tex}$\n\n$$\n${tex}\n$$\n`).join("\n"),
  "many-formulas": "$\\frac{a}{b}$ ".repeat(4000 * size),
  directions: `# שלום עולם

שלום, זהו \`code()\` בתוך טקסט.

- פריט ראשון
- פריט שני

> ציטוט

An English paragraph with שלום in it.

| שם | גיל |
|---|---|
| עדה | 36 |
`,
  wide: `\`\`\`ts\nconst line = "${"x".repeat(900)}";\n\`\`\`\n\n| ${"wide column | ".repeat(20)}\n|${"-|".repeat(20)}\n| ${"a | ".repeat(20)}\n\n${"- ".repeat(30)}deep\n\n${"> ".repeat(30)}deep\n\n$${"x".repeat(300)}$ \`${"y".repeat(300)}\` https://example.com/${"z".repeat(300)}\n`,
  code: `Here:\n\n\`\`\`\`js\nconst one = 1;\n\n\`\`\`\n\`\`\`\`\n`,
  numbers: `Items:\n\n${Array.from({ length: 100 * size }, (_, at) => `${at + 1}. item *${at}*\n`).join("")}\n| a | b |\n|---|---|\n${"| 1 | 2 |\n".repeat(100 * size)}`,
  "long-code": `\`\`\`js\n${`const line = "${"x".repeat(200)}end";\n`.repeat(60)}\`\`\`\n`,
  json: '{"name": "Maria", "big": 12345678901234567890, "list": [1, {}, []]}',
  "not-json": '{"name"} is **not** JSON.',
  scripts: `<script>globalThis.ran = 1</script>

<img src=x onerror="globalThis.ran = 1"> <svg onload="globalThis.ran=1"> <style>body { display: none }</style>

<iframe src="javascript:globalThis.ran=1"></iframe><base href="https://evil.example/"><meta http-equiv="refresh" content="0;url=https://evil.example">

[a](javascript:globalThis.ran=1) [b](JaVaScRiPt:globalThis.ran=1) [c](data:text/html,<script>1</script>) [d](vbscript:x) [e](file:///etc/passwd)
[f](<java
script:alert(1)>) [g](&#106;avascript:globalThis.ran=1) [h](//evil.example) [i](/admin) [j](\u0001javascript:globalThis.ran=1) <javascript:globalThis.ran=1>

![cat](https://evil.example/cat.png) ![](https://evil.example/none.png) ![x](javascript:globalThis.ran=1) [![in](https://evil.example/in.png)](https://evil.example/out)

[https://bank.example](https://evil.example/login) [ok](https://good.example "title\\" onclick=\\"globalThis.ran=1")

\`\`\`"><script>globalThis.ran=1</script>
code
\`\`\`

\`\`\`html
<script>globalThis.ran = 1</script><img src=x onerror=globalThis.ran=1>
\`\`\`

| <script>globalThis.ran=1</script> | b |
|---|---|
| <img src=https://evil.example/x.png> | c |
`,
  quotes: `${">".repeat(deep)} end of quotes`,
  "quote-lines": `${"> ".repeat(2000)}a\n`.repeat(10 * size),
  lists: `${"- ".repeat(deep)}end of lists`,
  "nested-lines": Array.from({ length: 200 * size }, (_, at) => `${"  ".repeat(at)}- x`).join("\n"),
  table: `| a | b |\n|---|---|\n${"| 1 | 2 |\n".repeat(4000 * size)}`,
  "wide-table": `|${" a |".repeat(1400)}\n|${"-|".repeat(1400)}\n${"|1|\n".repeat(1000 * size)}`,
  fence: `\`\`\`js\n${"let a = 1;\n".repeat(10_000 * size)}`,
  line: "x".repeat(200_000 * size),
  "code-line": `\`\`\`\n${"x".repeat(200_000 * size)}`,
  brackets: "![".repeat(20_000 * size),
  emphasis: "*a _b ".repeat(10_000 * size),
  item: `- a\n${"lazy ![ line\n".repeat(10_000 * size)}`,
  regex: `\`\`\`js\nvar a = ${"/".repeat(4000 * size)}${"(".repeat(4000 * size)}\n\`\`\``,
};

/** `NAME [CHARACTERS]`: the text of this name in chunks of so many characters. */
export default defineProgram(async function* ({ messages }) {
  const [name = "", size = "7"] = String(messages.at(-1)?.content).split(" ");
  const text = texts[name] ?? `No such text: ${name}`;
  for (let at = 0, chunks = 0; at < text.length; at += Number(size), chunks++) {
    yield text.slice(at, at + Number(size));
    if (chunks % 200 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  }
});
