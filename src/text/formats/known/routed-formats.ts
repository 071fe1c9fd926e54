import type { RoutedFormat } from "../format.ts";

/** Formats in which every message has a header with its recipient. */
export const routedFormats: readonly RoutedFormat[] = [
  {
    kind: "routed",
    id: "gpt-oss",
    aliases: ["reasoning-gpt-oss"],
    start: "<|start|>",
    headerEnd: "<|message|>",
    ends: ["<|end|>", "<|call|>", "<|return|>"],
    routes: [
      {
        header: "to=functions\\.(?<name>[^\\s<]+)",
        write: [
          "<|channel|>commentary to=functions.{name} <|constrain|>json",
          "<|channel|>commentary to=functions.{name}",
          "<|channel|>analysis to=functions.{name} <|constrain|>json",
          "<|channel|>analysis to=functions.{name}",
          " to=functions.{name}<|channel|>commentary json",
          " to=functions.{name}<|channel|>commentary <|constrain|>json",
          " to=functions.{name}<|channel|>commentary",
          " to=functions.{name}<|channel|>analysis",
        ],
        to: { kind: "json" },
      },
      { header: "to=(?!assistant\\b)", to: "drop" },
      { header: "<\\|channel\\|>analysis(?![^]*<\\|channel\\|>)", write: ["<|channel|>analysis"], to: "reasoning" },
      { header: "", write: ["<|channel|>final"], to: "content" },
    ],
  },
  {
    kind: "routed",
    id: "muse-glimmer",
    start: "<|start|>",
    headerEnd: "<|message|>",
    ends: ["<|eom|>", "<|eot|>"],
    routes: [
      { header: "to=self\\b", write: ["assistant to=self"], to: "reasoning" },
      { header: "to=user\\b", write: ["assistant to=user"], to: "content" },
      {
        header: "to=(?<name>[^\\s<]+)",
        write: ["assistant to={name}"],
        to: {
          kind: "plain",
          id: "muse-glimmer-call",
          section: { open: ["<atem:function_calls>"], close: ["</atem:function_calls>"] },
          calls: [
            {
              form: "named",
              open: ['<atem:invoke name="'],
              close: ["</atem:invoke>"],
              head: "{name}",
              headEnd: ['">'],
              args: {
                kind: "tagged",
                open: '<atem:parameter name="',
                keyEnd: '">',
                close: "</atem:parameter>",
                trim: "none",
              },
            },
          ],
        },
      },
    ],
  },
  {
    kind: "routed",
    id: "functionary-v3.2",
    start: ">>>",
    headerEnd: "\n",
    ends: ["<|eot_id|>"],
    routes: [
      { header: "^all$", write: ["all"], to: "content" },
      { header: "^(?<name>\\S+)$", write: ["{name}"], to: { kind: "json" } },
    ],
  },
];
