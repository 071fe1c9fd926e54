import type { VNode } from "preact";
import { announcement } from "../parts/changing.ts";
import type { Settings } from "./settings.ts";
import { toolIn } from "./tool.ts";
import type { PlayTool } from "./tool.ts";

interface Properties {
  readonly settings: Settings;
  /** The names of the tools that the server runs. */
  readonly hosted: readonly string[];
}

/** The tools that a model may call, and what they give back. */
export function ToolSettings({ settings, hosted }: Properties): VNode {
  const { tools, toolChoice, hostedTools } = settings;
  const set = tools.length + hostedTools.length;
  const choose = (name: string, isChosen: boolean): void => {
    const others = hostedTools.filter((other) => other !== name);
    settings.set({ hostedTools: isChosen ? [...others, name] : others });
  };
  const add = (): void => {
    const id = Math.max(0, ...tools.map((tool) => tool.id)) + 1;
    const tool: PlayTool = { id, name: "", description: "", parameters: "", canned: "" };
    settings.set({ tools: [...tools, tool] });
  };
  return (
    <details>
      <summary>Tools{set > 0 && <span class="count">{set}</span>}</summary>
      <div class="stack">
        {[...new Set([...hosted, ...hostedTools])].map((name) => (
          <label key={name} class="check">
            <input
              type="checkbox"
              checked={hostedTools.includes(name)}
              onChange={({ currentTarget }) => choose(name, currentTarget.checked)}
            />
            <span>
              <code>{name}</code>, if this server runs it
            </span>
          </label>
        ))}
        {tools.map((tool) => (
          <ToolFields key={tool.id} tool={tool} settings={settings} />
        ))}
        <div class="row">
          <button type="button" onClick={add}>
            Add a tool
          </button>
        </div>
        {tools.length > 0 && (
          <label class="field">
            <span>
              <code>tool_choice</code>
            </span>
            <select
              value={toolChoice}
              onChange={({ currentTarget }) => settings.set({ toolChoice: currentTarget.value })}
            >
              <option value="">the model decides</option>
              <option value="required">some tool must be called</option>
              <option value="none">no tool</option>
              {tools
                .filter(({ name }) => name !== "")
                .map(({ id, name }) => (
                  <option key={id} value={`tool:${name}`}>
                    {name}
                  </option>
                ))}
            </select>
          </label>
        )}
      </div>
    </details>
  );
}

function ToolFields({ tool, settings }: { readonly tool: PlayTool; readonly settings: Settings }): VNode {
  const change = (values: Partial<PlayTool>): void =>
    settings.set({ tools: settings.tools.map((other) => (other.id === tool.id ? { ...other, ...values } : other)) });
  const remove = (): void => {
    const { toolChoice } = settings;
    settings.set({
      tools: settings.tools.filter(({ id }) => id !== tool.id),
      toolChoice: toolChoice === `tool:${tool.name}` ? "" : toolChoice,
    });
  };
  const paste = (event: ClipboardEvent): void => {
    const found = toolIn(event.clipboardData?.getData("text") ?? "");
    if (!found?.name) return;
    event.preventDefault();
    change(found);
    announcement.say(`The tool ${found.name} was read from what you pasted.`);
  };
  return (
    <fieldset class="tool stack">
      <legend>{tool.name === "" ? "New tool" : tool.name}</legend>
      <label class="field">
        <span>Name</span>
        <input type="text" value={tool.name} onInput={({ currentTarget }) => change({ name: currentTarget.value })} />
      </label>
      <label class="field">
        <span>Description</span>
        <input
          type="text"
          dir="auto"
          value={tool.description}
          onInput={({ currentTarget }) => change({ description: currentTarget.value })}
        />
      </label>
      <label class="field">
        <span>Parameters, a JSON schema</span>
        <textarea
          rows={3}
          class="code"
          value={tool.parameters}
          placeholder="Paste a schema, or a whole tool"
          onInput={({ currentTarget }) => change({ parameters: currentTarget.value })}
          onPaste={paste}
        />
      </label>
      <label class="field">
        <span>Canned result</span>
        <textarea
          rows={1}
          dir="auto"
          class="code"
          value={tool.canned}
          placeholder="Empty: you answer each call"
          onInput={({ currentTarget }) => change({ canned: currentTarget.value })}
        />
      </label>
      <div class="row end">
        <button type="button" class="quiet" onClick={remove}>
          Remove {tool.name === "" ? "the tool" : tool.name}
        </button>
      </div>
    </fieldset>
  );
}
