import type { Format } from "../../formats/format.ts";
import { formatNamed } from "../../formats/known.ts";
import type { TemplateMetadata } from "../../templates/template-metadata.ts";

/**
 * The format that a template names in its metadata (requirements T15): by name, or JSON between the markers that it gives. undefined:
 * it names none that is known.
 */
export function formatInMetadata({ toolCallFormat, toolStart, toolEnd }: TemplateMetadata): Format | undefined {
  const named = toolCallFormat === undefined ? undefined : formatNamed(toolCallFormat);
  if (toolStart === undefined) return named;
  const format = named ?? formatNamed("json");
  if (format?.kind !== "plain") return format;
  return { ...format, section: { open: [toolStart], close: toolEnd === undefined ? [] : [toolEnd] } };
}
