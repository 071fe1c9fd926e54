// A program for file_search: one file, whatever is asked.
export default function ({ arguments: { query }, options }) {
  const [store = "none"] = options.stores ?? [];
  return [{ fileId: "file_1", filename: `${store}.md`, score: 0.9, text: `About ${query}: the tide is high.` }];
}
