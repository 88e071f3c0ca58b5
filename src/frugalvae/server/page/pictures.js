// Where do photographs come from? Dropped, chosen or pasted files.

import { button, fill, h, icon } from "./dom.js";
import { notice } from "./notices.js";
import { t } from "./strings.js";

const RAW = /\.(cr[23]|nef|arw|dng|orf|rw2|raf)$/i; // of cameras, which browsers call images
const ENDINGS = /\.(jpe?g|png|webp|gif|bmp|tiff?|hei[cf]|avif)$/i;

const isImage = (file) => (file.type.startsWith("image/") && !RAW.test(file.name)) || ENDINGS.test(file.name);

/** The images among files; a notice names the others, but for hidden ones. */
export function images(files) {
  const found = [...files].filter(isImage);
  const others = [...files].filter((file) => !isImage(file) && !file.name.startsWith("."));
  const names = others.map((file) => file.name);
  if (found.length && names.length) setTimeout(() => notice(t.pictures.others(names))); // when older ones are gone
  return found;
}

/** Files on the clipboard, named. */
export function pasted(event) {
  return images(event.clipboardData?.files ?? []);
}

/** What was dropped: files, with those in folders, and the name of the folder if it is one. */
export async function dropped(event) {
  const items = [...(event.dataTransfer?.items ?? [])];
  const entries = items.map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const flat = images(event.dataTransfer?.files ?? []);
  if (!entries.some((entry) => entry.isDirectory)) return { files: flat, folder: null };
  const files = (await Promise.all(entries.map(inside))).flat();
  return { files: images(files), folder: entries.length === 1 ? entries[0].name : null };
}

async function inside(entry) {
  if (entry.isFile) return [await new Promise((done, fail) => entry.file(done, fail))];
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (!some.length) return found;
    found.push(...(await Promise.all(some.map(inside))).flat());
  }
}

/** A place for photographs: to drop them on, with buttons to choose them or to use the camera. */
export function dropZone({ add, camera }) {
  const input = h("input", {
    type: "file",
    accept: "image/*,.heic,.heif",
    multiple: true,
    hidden: true,
    on: {
      change: () => {
        add(images(input.files));
        input.value = "";
      },
    },
  });
  return h(
    "div",
    { class: "drop" },
    h("div", { class: "drop-art" }, icon("photograph")),
    h("p", { class: "drop-title for-mouse" }, t.pictures.drop),
    h("p", { class: "drop-title for-touch" }, t.pictures.show),
    h("p", { class: "muted drop-hint for-mouse" }, t.pictures.paste),
    h(
      "div",
      { class: "row centre" },
      button(t.pictures.choose, { kind: "primary", shape: "photograph" }, () => input.click()),
      button(t.pictures.camera, { shape: "camera" }, camera),
    ),
    input,
  );
}

/** A small picture of a file; an icon where the browser cannot show it. */
export function thumbnail(file, alt) {
  const url = URL.createObjectURL(file);
  const frame = h("span", { class: "picture" });
  const image = h("img", {
    alt,
    decoding: "async",
    on: {
      load: () => URL.revokeObjectURL(url),
      error: () => {
        URL.revokeObjectURL(url);
        fill(frame, icon("photograph"), h("span", { class: "hidden-text" }, alt));
      },
    },
  });
  image.src = url;
  return fill(frame, image);
}
