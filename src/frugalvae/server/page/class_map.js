// Which classes look alike? A map in two dimensions, with lines between what is confused.

import { breakable, fill, h, s } from "./dom.js";
import { t } from "./strings.js";

const EDGE = 30; // pixels that remain free around
const MOVED = 200; // dots at most
const LONGEST = 20; // letters of a name
const LETTER = 7.2; // pixels

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/**
 * The map, so many pixels wide; `chosen` is called with the class that is clicked.
 *
 * A dot that is pointed at tells its name. One of them can be reached by Tab, the others from it by arrows.
 */
export function classMap({ classes, confused }, width, chosen) {
  const height = Math.round(Math.min(380, 0.75 * width));
  const points = placed(classes, width, height);
  const of = new Map(points.map((point) => [String(point.label), point]));
  const lines = confused.map(({ label, taken_for: other, share }) => {
    const [a, b] = [of.get(String(label)), of.get(String(other))];
    const line = a && b && s("line", { x1: a.x, y1: a.y, x2: b.x, y2: b.y, class: "link-line" });
    line?.style.setProperty("--share", share);
    return line ?? null;
  });
  const tip = h("div", { class: "map-tip", "aria-hidden": "true", hidden: true });
  const dots = points.map((point) => dot(point, chosen, (on) => tell(tip, on && point, width)));
  dots[0]?.setAttribute("tabindex", 0);
  const walk = (event) => step(event, dots);
  const props = { class: "map", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": t.classes.mapLabel(classes.length), on: { keydown: walk } };
  return h("div", { class: "map-box" }, s("svg", props, lines, dots, names(points, [0, 0, width, height])), tip);
}

/** Say the name of a class beside its dot, or nothing. */
function tell(tip, point, width) {
  tip.hidden = !point;
  if (!point) return;
  fill(tip, breakable(point.label));
  const left = point.x - tip.offsetWidth / 2;
  const above = point.y - point.r - 6 - tip.offsetHeight;
  tip.style.left = `${Math.max(0, Math.min(left, width - tip.offsetWidth))}px`;
  tip.style.top = `${above < 0 ? point.y + point.r + 6 : above}px`;
}

/** Go to another dot by arrows. */
function step(event, dots) {
  const [place, by] = [dots.indexOf(event.target), STEPS[event.key]];
  if (place < 0 || !by) return;
  event.preventDefault();
  const next = dots[(place + by + dots.length) % dots.length];
  event.target.setAttribute("tabindex", -1);
  next.setAttribute("tabindex", 0);
  next.focus();
}

/** Where each class is drawn: as large as fits, and as round as it was. */
function placed(classes, width, height) {
  const there = classes.filter(({ x, y }) => Number.isFinite(x) && Number.isFinite(y));
  const [xs, ys] = [there.map(({ x }) => x), there.map(({ y }) => y)];
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const [wide, high] = [Math.max(...xs) - left || 1, Math.max(...ys) - top || 1];
  const scale = Math.min((width - 4 * EDGE) / wide, (height - 2 * EDGE) / high);
  const most = Math.max(...there.map(({ samples }) => samples ?? 1));
  return apart(
    there.map((one) => ({
      ...one,
      x: width / 2 + scale * (one.x - left - wide / 2),
      y: height / 2 + scale * (one.y - top - high / 2),
      r: 4 + 5 * Math.sqrt((one.samples ?? 1) / most),
    })),
  );
}

/** Dots that would hide each other, pushed apart a little. */
function apart(points) {
  const near = points.slice(0, MOVED);
  for (let round = 0; round < 10; round += 1) {
    for (const [place, a] of near.entries()) for (const b of near.slice(place + 1)) push(a, b);
  }
  return points;
}

function push(a, b) {
  const [x, y] = [b.x - a.x || 0.01, b.y - a.y];
  const distance = Math.hypot(x, y);
  const step = (a.r + b.r + 1 - distance) / (2 * distance);
  if (step <= 0) return;
  a.x -= step * x;
  a.y -= step * y;
  b.x += step * x;
  b.y += step * y;
}

function dot(point, chosen, pointed) {
  const { x, y, r, label } = point;
  const on = {
    click: () => chosen(label),
    keydown: (event) => [" ", "Enter"].includes(event.key) && (event.preventDefault(), chosen(label)),
    pointerenter: () => pointed(true),
    pointerleave: () => pointed(false),
    focus: () => pointed(true),
    blur: () => pointed(false),
  };
  const props = { cx: x, cy: y, r, class: "dot", role: "button", tabindex: -1, "aria-label": String(label) };
  return s("circle", { ...props, data: { label: String(label) }, on }, s("title", {}, String(label)));
}

/** Names, where there is room for them; the others are told by pointing at their dots. */
function names(points, all) {
  const taken = points.map(({ x, y, r }) => [x - r, y - r, x + r, y + r]);
  return [...points]
    .sort((a, b) => (b.samples ?? 0) - (a.samples ?? 0))
    .map((point) => {
      const text = shortened(String(point.label));
      const place = places(point, LETTER * [...text].length).find(({ box }) => inside(box, all) && !taken.some((other) => overlap(box, other)));
      if (!place) return null;
      taken.push(place.box);
      const props = { x: place.x, y: place.y, "text-anchor": place.anchor, class: "map-name", data: { label: String(point.label) } };
      return s("text", props, text);
    });
}

function places({ x, y, r }, width) {
  const gap = r + 6;
  return [
    { x, y: y - gap, anchor: "middle", box: [x - width / 2, y - gap - 12, x + width / 2, y - gap + 3] },
    { x, y: y + gap + 10, anchor: "middle", box: [x - width / 2, y + gap - 2, x + width / 2, y + gap + 13] },
    { x: x + gap, y: y + 4, anchor: "start", box: [x + gap, y - 8, x + gap + width, y + 7] },
    { x: x - gap, y: y + 4, anchor: "end", box: [x - gap - width, y - 8, x - gap, y + 7] },
  ];
}

function inside(a, b) {
  return b[0] < a[0] && b[1] < a[1] && a[2] < b[2] && a[3] < b[3];
}

function overlap(a, b) {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}

function shortened(name) {
  const letters = [...name];
  return letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : name;
}
