import { expect, test } from "vitest";
import { stopSignals } from "./listen-until-signal.ts";

// Closing the console of Windows read the configuration again, and ten seconds later the process was ended in the middle of its answers.
test("closing the console stops a server on Windows; elsewhere SIGHUP reads the configuration again", () => {
  expect(stopSignals("win32")).toContain("SIGHUP");
  expect(stopSignals("linux")).toEqual(["SIGINT", "SIGTERM"]);
  expect(stopSignals("darwin")).toEqual(["SIGINT", "SIGTERM"]);
});
