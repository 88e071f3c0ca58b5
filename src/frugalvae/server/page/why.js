// Why this class? The photograph twice, with what speaks for each of two classes in a colour.

import { request } from "./api.js";
import { h, label } from "./dom.js";
import { day, percent } from "./format.js";
import { server } from "./server.js";
import { t } from "./strings.js";

const WIDE = 320; // pixels of a picture
const COLOURS = ["255, 138, 0", "0, 122, 255"]; // as t.why.colours calls them
const STRENGTH = 0.75; // of the colour where a part matters most

/** Two pictures of a photograph, and what they show in words; percentages are those of its answer. */
export async function explanation(file, answer) {
  const form = new FormData();
  form.append("images", file, file.name);
  const [{ classes, influence }, image] = await Promise.all([
    request("POST", "explain", { form }),
    createImageBitmap(file).catch(() => null), // a format that this browser cannot show
  ]);
  const most = Math.max(1e-9, ...influence.flat().map(Math.abs));
  const chances = new Map(answer.top.map((one) => [one.label, one.probability]));
  const figures = classes.map((one, place) => {
    const shares = influence.flat().map((value) => Math.max(0, ((place ? -1 : 1) * value) / most));
    const said = { ...one, probability: chances.get(one.label) ?? one.probability };
    return h("figure", {}, image && tinted(image, shares, influence.length, COLOURS[place]), caption(said, place));
  });
  return [h("p", { class: "muted" }, t.why.about), figures];
}

function caption({ label: name, probability, part, taught }, place) {
  const samples = server.names.get(String(name));
  const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
  swatch.style.backgroundColor = `rgb(${COLOURS[place]})`;
  return h(
    "figcaption",
    {},
    h("span", { class: "legend" }, swatch, h("span", {}, t.why.colours[place], " ", label(name), ` (${percent(probability)})`)),
    h("span", {}, part ? t.why.where(part) : t.why.nowhere),
    samples > 0 && h("span", { class: "muted" }, t.why.taught(samples, taught.length ? day(taught.at(-1).when) : null)),
  );
}

/** The photograph in grey, with parts that matter in a colour. */
function tinted(image, shares, side, colour) {
  const scale = Math.min(1, WIDE / image.width);
  const canvas = h("canvas", { width: Math.round(scale * image.width), height: Math.round(scale * image.height), "aria-hidden": "true" });
  const on = canvas.getContext("2d");
  on.drawImage(image, 0, 0, canvas.width, canvas.height);
  on.globalCompositeOperation = "saturation";
  on.fillStyle = "gray";
  on.fillRect(0, 0, canvas.width, canvas.height);
  on.globalCompositeOperation = "source-over";
  on.drawImage(cells(shares, side, colour), 0, 0, canvas.width, canvas.height);
  return canvas;
}

/** A pixel for each part, which becomes smooth as it is enlarged. */
function cells(shares, side, colour) {
  const small = h("canvas", { width: side, height: shares.length / side });
  const on = small.getContext("2d");
  shares.forEach((share, place) => {
    on.fillStyle = `rgba(${colour}, ${STRENGTH * share})`;
    on.fillRect(place % side, Math.floor(place / side), 1, 1);
  });
  return small;
}
