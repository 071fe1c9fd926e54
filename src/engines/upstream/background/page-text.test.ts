import { Buffer } from "node:buffer";
import { describe, expect, test } from "vitest";
import { htmlText, pageText } from "./page-text.ts";

const at = "https://example.com/docs/page";
const bytes = (text: string, encoding: BufferEncoding = "utf8"): Uint8Array =>
  new Uint8Array(Buffer.from(text, encoding));

describe("the text of HTML", () => {
  test("has headings, lists, tables and links in their order, and a title", () => {
    const html = `<!doctype html><html><head><title> Release
      notes </title><style>p { color: red }</style></head><body><h1>Version&nbsp;2</h1>
      <p>It is <b>faster</b>, see <a href="../bench#x">the
      numbers</a>.</p><ul><li>one</li><li>two</li></ul>
      <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
      <pre>if (a)
    b();</pre><img src="a.png" alt="A chart"><script>evil()</script></body></html>`;
    expect(htmlText(html, at)).toEqual({
      title: "Release notes",
      mediaType: "text/plain",
      isCut: false,
      text: [
        "# Version 2",
        "",
        "It is faster, see [the numbers](https://example.com/bench).",
        "",
        "- one",
        "- two",
        "",
        "a | b",
        "1 | 2",
        "",
        "if (a)\n    b();",
        "",
        "[image: A chart]",
      ].join("\n"),
    });
  });

  test.each([
    ["a hidden element", "<p>seen<div hidden>not<div>either</div>nor this</div><p>again", "seen\n\nagain"],
    ["a style that hides", '<p>seen<span style="display : none">not</span> too', "seen too"],
    ["a script in a script's text", "a<script>'<script>'</script>b", "ab"],
    ["links that are not of the web", '<a href="javascript:alert(1)">a</a> <a href="data:,x">b</a>', "a b"],
    ["a link without text", '<a href="/x"></a>text', "text"],
    [
      "a link in a link",
      '<a href="/x">a <a href="/y">b</a></a>',
      "[a](https://example.com/x) [b](https://example.com/y)",
    ],
    ["a base", '<base href="https://other.example/"><a href="x">a</a>', "[a](https://other.example/x)"],
    ["character references", "<p>&lt;b&gt; &amp; &#x41;&#66;", "<b> & AB"],
    ["a comment", "a<!-- <p>no -->b", "ab"],
  ])("%s", (_, html, text) => {
    expect(htmlText(html, at).text).toBe(text);
  });

  test("without words is refused", () => {
    expect(() => htmlText("<html><body><script>x</script></body></html>", at)).toThrow("it has no text");
  });
});

describe("a page is read by its type and its encoding", () => {
  test.each([
    ["text/html; charset=iso-8859-1", bytes("<p>caf\xe9", "latin1"), "café"],
    ["text/html", bytes('<meta charset="windows-1252"><p>\x80 5', "latin1"), "€ 5"],
    [
      "text/html",
      bytes('<meta http-equiv=content-type content="text/html; charset=shift_jis"><p>\x93\xfa', "latin1"),
      "日",
    ],
    ["text/html; charset=utf-8", bytes("<p>\xff\xfe<", "latin1"), "\ufffd\ufffd<"],
    ["text/html; charset=klingon", bytes("<p>ü"), "ü"],
    ["text/html; charset=utf-8", new Uint8Array([0xff, 0xfe, 0x3c, 0, 0x70, 0, 0x3e, 0, 0xfc, 0]), "ü"],
    ["", bytes("<!DOCTYPE html><p>no type"), "no type"],
    ["application/json", bytes('{"a":1}'), '{"a":1}'],
    ["text/markdown", bytes("# <b>"), "# <b>"],
  ])("%s %#", async (type, data, text) => {
    expect((await pageText(data, type, at)).text).toBe(text);
  });

  test.each([
    ["image/png", bytes("\x89PNG", "latin1"), "its type image/png is neither text nor a document that can be read"],
    ["text/plain", bytes("a\0b"), "its type is not text: it has zero bytes"],
    ["text/html", new Uint8Array(), "it has no text"],
  ])("%s is refused %#", async (type, data, reason) => {
    await expect(pageText(data, type, at)).rejects.toThrow(reason);
  });
});
