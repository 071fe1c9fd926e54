import { expect, test } from "vitest";
import { ask, expectAccessible, expectFits } from "../support/open-page.ts";
import { describePage, looks, talker } from "../support/describe-page.ts";

describePage("for everybody", [talker], (at) => {
  test.each(looks)("axe finds nothing: %s", async (_, options) => {
    const { page, wrong, close } = await at.open("play", options);
    const narrow = options.viewport.width < 900;
    await expectAccessible(page, "empty");
    if (narrow) await page.getByRole("button", { name: "Settings" }).click();
    for (const title of ["Parameters", "Tools", "Form of the answer", "Choices"])
      await page.locator("#settings summary", { hasText: title }).click();
    await page.locator("summary", { hasText: "more" }).click();
    await page.getByRole("button", { name: "Add a tool" }).click();
    await page.getByLabel("Name", { exact: true }).fill("count");
    await page.getByLabel("The answer is").selectOption("schema");
    await expectAccessible(page, "all settings open");
    await page.getByLabel("The answer is").selectOption("text");
    await page.getByLabel("Token probabilities").check();
    await page.getByLabel("Choices side by side").fill("2");
    if (narrow) await page.getByRole("button", { name: "Hide settings" }).click();
    await ask(page, "odds");
    // The answer may still scroll under the pointer, which hides the tip until the pointer enters the token again.
    await expect
      .poll(async () => {
        await page.mouse.move(0, 0);
        await page.locator("[data-chunk]").nth(1).hover();
        return page.getByRole("tooltip").isVisible();
      })
      .toBe(true);
    await expectAccessible(page, "choices, with the odds of a token");
    await ask(page, "fail");
    await expectAccessible(page, "a failure");
    await ask(page, "think");
    await page.locator(".reasoning summary").first().click();
    await ask(page, "call count");
    await page.getByLabel("What count gives back").waitFor();
    await page.getByRole("button", { name: "Edit" }).first().click();
    await expectAccessible(page, "reasoning, a call, a question that is edited");
    await page.getByRole("button", { name: "Copy as…" }).last().click();
    await expectAccessible(page, "a dialog");
    await page.keyboard.press("Escape");
    // Nothing sticks out of a narrow screen (WCAG 1.4.10).
    await expectFits(page, "at the end");
    expect(wrong).toEqual([]);
    await close();
  });

  test("a conversation needs no pointer, and is told to those who hear it", async () => {
    const { page, close } = await at.open();
    const focused = (): Promise<unknown> =>
      page.evaluate("document.activeElement.textContent || document.activeElement.ariaLabel");
    // A page that was just opened is written to at once.
    await expect.poll(() => focused()).toBe("Your message");
    // The first stop of the Tab key leads past the header, here and where the page has no message to write.
    await page.locator(".skip").focus();
    await page.keyboard.press("Tab");
    await expect.poll(() => focused()).toBe("Play");
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await expect.poll(() => focused()).toBe("Your message");
    await page.evaluate("location.hash = '#check'");
    await page.locator(".skip").focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => page.evaluate("document.activeElement.id")).toBe("main");
    await expect.poll(() => page.evaluate("location.hash")).toBe("#check");
    await page.evaluate("location.hash = '#play'");
    await page.getByLabel("Your message", { exact: true }).focus();
    await page.keyboard.type("hello");
    await page.keyboard.press("Enter");
    await page.locator("[role=status]", { hasText: "The answer is complete." }).waitFor({ state: "attached" });
    // Where it was: the next question can be written.
    await expect.poll(() => focused()).toBe("Your message");
    await page.keyboard.press("Shift+Tab");
    await expect.poll(() => focused()).toBe("Copy text");
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Ask the same from elsewhere" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await expect.poll(() => focused()).toBe("Copy as…");
    await close();
  });
});
