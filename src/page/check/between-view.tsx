import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { AdminRefusal, askAdmin, messageIn, readEvents } from "../api/call-api.ts";
import { announcement } from "../parts/changing.ts";
import { Field } from "../parts/field.tsx";
import { saveFile } from "../parts/save-file.ts";
import { signs } from "./probe-table.tsx";
import { AdminKeyField } from "./server-profiles.tsx";
import type { BetweenJson } from "../../judge/between/report.ts";

type Event =
  | { readonly type: "progress"; readonly done: number; readonly all: number; readonly about: string }
  | { readonly type: "done"; readonly report: BetweenJson }
  | { readonly type: "error" };

const apis = ["chat", "responses", "messages", "ollama", "gemini"];
const directions = { request: "To the vendor", answer: "Back to the client", transport: "On the way" };

/** What a gateway loses, as `truewire between` says it: the page's server is on both sides of it. */
export default function BetweenView(): VNode {
  const [fields, setFields] = useState({
    url: "",
    key: "",
    client: "chat",
    vendor: "chat",
    port: "9001",
    confirm: "0",
    seeds: "",
    quick: true,
  });
  const [running, setRunning] = useState<AbortController>();
  const [progress, setProgress] = useState({ done: 0, all: 0, about: "" });
  const [report, setReport] = useState<BetweenJson>();
  const [problem, setProblem] = useState("");
  const [adminKeyNeeded, setAdminKeyNeeded] = useState(false);

  const run = async (): Promise<void> => {
    const controller = new AbortController();
    setRunning(controller);
    setReport(undefined);
    setProblem("");
    setProgress({ done: 0, all: 0, about: "" });
    const { key, port, confirm, seeds, ...rest } = fields;
    const body = {
      ...rest,
      url: fields.url.trim(),
      port: Number(port),
      confirm: Number(confirm),
      ...(key.trim() !== "" && { key: key.trim() }),
      // What is not a number becomes null, which the server refuses.
      seeds: seeds.match(/[^\s,]+/g)?.map(Number),
    };
    try {
      const response = await askAdmin("between", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
        signal: controller.signal,
      });
      for await (const event of readEvents(response)) {
        const one = event as Event;
        if (one.type === "progress") setProgress(one);
        else if (one.type === "done") {
          setReport(one.report);
          announcement.say(`${fields.url}: ${one.report.summary}.`);
        } else setProblem(messageIn(event) ?? "The run failed.");
      }
    } catch (error) {
      if (controller.signal.aborted) setProblem("Stopped before the end.");
      else if (error instanceof AdminRefusal) {
        setAdminKeyNeeded(error.status === 401);
        setProblem(error.message);
      } else setProblem("The server that this page is from cannot be reached.");
    }
    setRunning(undefined);
  };
  const select = (label: string, name: "client" | "vendor"): VNode => (
    <Field label={label}>
      {(ids) => (
        <select
          {...ids}
          value={fields[name]}
          onChange={({ currentTarget }) => setFields({ ...fields, [name]: currentTarget.value })}
        >
          {apis.map((api) => (
            <option key={api} value={api}>
              {api}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
  const input = (
    label: string,
    name: "url" | "key" | "port" | "confirm" | "seeds",
    type: "url" | "password" | "number" | "text",
    note: string,
  ): VNode => (
    <Field label={label} note={note}>
      {(ids) => (
        <input
          {...ids}
          type={type as "url"}
          required={name === "url" || name === "port"}
          autocomplete="off"
          value={fields[name]}
          onInput={({ currentTarget }) => setFields({ ...fields, [name]: currentTarget.value })}
        />
      )}
    </Field>
  );
  return (
    <div class="stack">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (running) running.abort();
          else void run();
        }}
      >
        <p class="note">
          Configure the gateway so that its model <code>between</code> is one of a vendor at this machine, at the port
          below. Requests with one fact each are sent to the gateway, and what reaches the vendor is compared with them.
        </p>
        <div class="side-by-side">
          {input("Base URL of the gateway", "url", "url", "Such as http://127.0.0.1:4000.")}
          {input("Key for the gateway", "key", "password", "If it needs one. It is sent to the gateway alone.")}
          {input("Port of the vendor", "port", "number", "As the gateway is configured.")}
        </div>
        <div class="side-by-side">
          {select("API of the clients", "client")}
          {select("API of the vendor", "vendor")}
        </div>
        <div class="side-by-side">
          {input("Requests that confirm a finding", "confirm", "number", "For each error and warning: from 0 to 20.")}
          {input("Seeds of the sessions", "seeds", "text", "Such as 3 4 5. By default 1 and 2, or 1 for a short run.")}
        </div>
        <label class="row">
          <input
            type="checkbox"
            checked={fields.quick}
            onChange={({ currentTarget }) => setFields({ ...fields, quick: currentTarget.checked })}
          />
          Only what gateways lose most often
        </label>
        {adminKeyNeeded && <AdminKeyField />}
        <div class="row end">
          <button type="submit" class="main">
            {running ? "Stop the run" : "Run"}
          </button>
        </div>
      </form>
      {running && (
        <div class="stack">
          <progress max={progress.all || 1} value={progress.done} aria-label={`Run through ${fields.url}`} />
          <p class="note">
            {progress.all === 0 ? "Starting…" : `${progress.done} of ${progress.all}: ${progress.about}`}
          </p>
        </div>
      )}
      {problem !== "" && <p class="banner wrong">{problem}</p>}
      {report && <Losses report={report} />}
    </div>
  );
}

/** The matrix of facts, and each finding with both sides. */
function Losses({ report }: { readonly report: BetweenJson }): VNode {
  const { facts, findings, summary, url } = report;
  return (
    <section class="stack probes" aria-label={`What ${url} loses`}>
      <div class="row">
        <h3>{summary}</h3>
        <span class="hint" />
        <button
          type="button"
          onClick={() => saveFile("between.json", "application/json", JSON.stringify(report, null, 2))}
        >
          Save as JSON
        </button>
      </div>
      <div class="rows" tabIndex={0} role="region" aria-label="Table of facts">
        <table>
          <thead>
            <tr>
              <th scope="col">Fact</th>
              <th scope="col">Direction</th>
              <th scope="col">Outcome</th>
            </tr>
          </thead>
          <tbody>
            {facts.map(({ id, title, side, worst }) => (
              <tr key={id}>
                <th scope="row">
                  {title} <code>{id}</code>
                </th>
                <td>{directions[side]}</td>
                <td class={worst ?? "passed"}>{worst === null ? "✓ arrives" : `${signs[worst]} ${worst}`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {findings.map(({ key, severity, message, facts: seen, curl, clientSide, vendorSide }) => (
        <details key={key} class="tool">
          <summary>
            <span class={severity}>
              {signs[severity]} {severity}
            </span>{" "}
            <code>{key}</code>: {message}
          </summary>
          <p class="note">Seen in: {seen.join(", ")}</p>
          {[
            ["A request that shows it", curl],
            ["At the client", clientSide],
            ["At the vendor", vendorSide],
          ].map(
            ([title = "", text = ""]) =>
              text !== "" && (
                <div key={title}>
                  <h4>{title}</h4>
                  <pre tabIndex={0} role="region" aria-label={`${title}: ${key}`}>
                    {text.slice(0, 4000)}
                  </pre>
                </div>
              ),
          )}
        </details>
      ))}
    </section>
  );
}
