import { FailureError } from "../../core/failure.ts";

/** What a template prints. */
export type GoTemplateValues = Readonly<Record<"System" | "Prompt" | "Suffix", string>>;

/**
 * Renders `template` of `POST /api/generate` up to `.Response`, where the answer begins. Of Go's text/template it has what templates for one
 * prompt need: fields, `if`, `else`, `end`, and `{{-` and `-}}`, which remove white space. Of others, returns the first action that it does
 * not have. Throws `FailureError`, in Go's words with `status`, for a template that is broken. Sources: Go's text/template/parse; ollama 0.33.0,
 * template/template.go, `Parse` and `Execute`.
 */
export function renderGoTemplate(
  template: string,
  values: GoTemplateValues,
  status: number,
): string | { readonly foreign: string } {
  const fields = new Map(Object.entries({ ...values, Response: "" }));
  const written: string[] = [];
  const open: { isTrue: boolean; hasElse: boolean }[] = [];
  // Branches around the place that are not taken.
  let hidden = 0;
  let trims = false;
  let isAnswer = false;
  for (let at = 0; ;) {
    const start = template.indexOf("{{", at);
    const end = start < 0 ? -1 : template.indexOf("}}", start);
    if (start >= 0 && end < 0) throw broken(template, template.length, "unclosed action", status);
    const inside = start < 0 ? "" : template.slice(start + 2, end);
    const text = template.slice(at, start < 0 ? template.length : start);
    const left = trims ? text.trimStart() : text;
    if (hidden === 0 && !isAnswer) written.push(/^-\s/.test(inside) ? left.trimEnd() : left);
    if (start < 0) break;
    at = end + 2;
    trims = /\s-$/.test(inside.slice(-2));
    const action = inside.slice(/^-\s/.test(inside) ? 1 : 0, trims ? -1 : undefined).trim();
    const [, condition, name = ""] = /^(if\s)?\s*\.(\w+)$/.exec(action) ?? [];
    const field = fields.get(name);
    const branch = open.at(-1);
    if (field !== undefined && condition !== undefined) {
      open.push({ isTrue: field !== "", hasElse: false });
      if (field === "") hidden++;
    } else if (field !== undefined) {
      if (hidden === 0 && !isAnswer) written.push(field);
      isAnswer ||= hidden === 0 && name === "Response";
    } else if (action === "else" || action === "end") {
      if (!branch || (action === "else" && branch.hasElse))
        throw broken(template, start, `unexpected {{${action}}}`, status);
      // A branch that was hidden ends; with `else`, the other one begins.
      if (!branch.isTrue) hidden--;
      else if (action === "else") hidden++;
      if (action === "end") open.pop();
      else Object.assign(branch, { isTrue: !branch.isTrue, hasElse: true });
    } else return { foreign: action };
  }
  if (open.length > 0) throw broken(template, template.length, "unexpected EOF", status);
  return written.join("");
}

function broken(template: string, at: number, words: string, status: number): FailureError {
  const line = template.slice(0, at).split("\n").length;
  return new FailureError({
    kind: "invalid-request",
    status,
    message: `template: :${line}: ${words}`,
    param: "template",
  });
}
