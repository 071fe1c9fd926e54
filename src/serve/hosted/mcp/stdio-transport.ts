import { type ChildProcess, execFile } from "node:child_process";
import { once } from "node:events";
import crossSpawn from "cross-spawn";
import { deserializeMessage, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import { getDefaultEnvironment } from "@modelcontextprotocol/client/stdio";

export interface StdioCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the few variables that every program needs. */
  readonly env: Readonly<Record<string, string>>;
  readonly folder?: string | undefined;
}

/** The longest message of a server, in bytes. */
const maxMessage = 8 * 1024 * 1024;
/** What is kept of a server's last words on stderr, in characters. */
const maxWords = 2000;
/** How long a server may take to end when its input has ended, in milliseconds. */
const graceMs = 2000;
const newline = 0x0a;

/**
 * An MCP server as a child process, in a group of its own, with a limited environment: the SDK's list of variables and those of the
 * configuration. The SDK's own transport copies what it has read of a message with every chunk, which is quadratic for a server that writes
 * a long message byte by byte; this one reads each byte once. A server whose message is too long is ended; lines that are no messages are left
 * out. Source: https://modelcontextprotocol.io/specification, "Transports", stdio.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport["onmessage"];
  readonly #command: StdioCommand;
  #child: ChildProcess | undefined;
  #chunks: Buffer[] = [];
  #size = 0;
  #words = "";
  #reason: string | undefined;

  constructor(command: StdioCommand) {
    this.#command = command;
  }

  /** Why the process has ended, for the log. */
  get reason(): string {
    const words = this.#words.trim();
    return `${this.#reason ?? "it ended"}${words === "" ? "" : `; it wrote: ${words}`}`;
  }

  get hasEnded(): boolean {
    return this.#reason !== undefined;
  }

  async start(): Promise<void> {
    const { command, args, env, folder } = this.#command;
    // The package finds scripts such as npx on Windows, which cmd.exe runs, and quotes their arguments.
    const child = crossSpawn(command, args, {
      env: { ...getDefaultEnvironment(), ...env },
      stdio: ["pipe", "pipe", "pipe"],
      // A signal of the terminal is for the server, which ends its programs when it has ended its requests.
      detached: process.platform !== "win32",
      windowsHide: true,
      ...(folder !== undefined && { cwd: folder }),
    });
    this.#child = child;
    child.stdout.on("data", (chunk: Buffer) => this.read(chunk));
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#words = (this.#words + text).slice(-maxWords);
    });
    // A server that has ended is reported by its exit.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => {});
    child.once("exit", (code, signal) => {
      this.#reason ??= signal === null ? `it ended with exit code ${code}` : `it ended by ${signal}`;
    });
    child.once("close", () => this.onclose?.());
    try {
      await once(child, "spawn");
    } catch (cause) {
      throw new Error(`${command} cannot be started: ${(cause as Error).message}`, { cause });
    }
    child.on("error", (error) => this.onerror?.(error));
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#child ?? {};
    if (!stdin?.writable) throw new Error("the server has ended");
    if (!stdin.write(`${JSON.stringify(message)}\n`)) await Promise.race([once(stdin, "drain"), once(stdin, "close")]);
  }

  async close(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
    const exited = once(child, "exit");
    child.stdin?.end();
    const timer = setTimeout(() => this.#kill(), graceMs);
    await exited;
    clearTimeout(timer);
  }

  /** Ends the process and those that it has started. */
  #kill(): void {
    const { pid } = this.#child ?? {};
    try {
      if (pid === undefined) return;
      if (process.platform === "win32") execFile("taskkill", ["/pid", String(pid), "/T", "/F"], () => {});
      else process.kill(-pid, "SIGKILL");
    } catch {
      // It has ended by itself.
    }
  }

  /** Reads what the server has written. */
  read(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      this.#chunks.push(chunk.subarray(start, end));
      const line = Buffer.concat(this.#chunks).toString("utf8").trim();
      this.#chunks = [];
      this.#size = 0;
      start = end + 1;
      if (line !== "") this.#receive(line);
    }
    const rest = chunk.subarray(start);
    if (rest.length === 0) return;
    this.#chunks.push(rest);
    this.#size += rest.length;
    if (this.#size > maxMessage) this.#break(`it sent a message of more than ${maxMessage} bytes`);
  }

  #receive(line: string): void {
    let message: JSONRPCMessage;
    try {
      message = deserializeMessage(line);
    } catch {
      // Many servers write lines for people where only messages belong.
      this.#words = `${this.#words}\n${line.slice(0, maxWords)}`.slice(-maxWords);
      return;
    }
    this.onmessage?.(message);
  }

  #break(reason: string): void {
    this.#reason ??= reason;
    this.#chunks = [];
    this.#size = 0;
    this.#child?.stdout?.removeAllListeners("data").resume();
    this.#kill();
  }
}
