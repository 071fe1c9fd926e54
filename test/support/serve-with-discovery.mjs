// Runs `truewire serve` of a build with its own options of discovery:  node serve-with-discovery.mjs DIST JSON [arguments of serve …]
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Command } from "commander";

const [dist, discovery, ...args] = process.argv.slice(2);
const { serveCommand } = await import(pathToFileURL(join(dist, "serve/cli/serve.js")).href);
const program = new Command("truewire");
serveCommand(program, JSON.parse(discovery));
await program.parseAsync(["serve", ...args], { from: "user" });
