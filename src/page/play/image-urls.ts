/** The images among files, as `data:` URLs. */
export async function imageUrls(files: FileList | null | undefined): Promise<string[]> {
  const images = [...(files ?? [])].filter(({ type }) => type.startsWith("image/"));
  return Promise.all(images.map(dataUrl));
}

function dataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result)));
    reader.addEventListener("error", () => reject(reader.error ?? new Error("The file cannot be read.")));
    reader.readAsDataURL(file);
  });
}
