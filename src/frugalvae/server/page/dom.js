// Elements, made without any markup: whatever comes from outside is text.

import { SHAPES } from "./icons.js";

const SVG = "http://www.w3.org/2000/svg";

/** An element. `on` has listeners, `data` has data attributes; null and false children are left out. */
export function h(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

/** The same for SVG. */
export function s(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

function filled(element, { on = {}, data = {}, ...rest }, children) {
  for (const [name, value] of Object.entries(rest)) {
    if (value === false || value === null || value === undefined) continue;
    if (name in element && ["value", "checked", "disabled", "hidden", "srcObject"].includes(name)) {
      element[name] = value;
    } else {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  Object.assign(element.dataset, data);
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  return fill(element, children);
}

/** Another content for an element. */
export function fill(element, ...children) {
  const shown = children.flat(Infinity).filter((child) => ![null, undefined, false, ""].includes(child));
  element.replaceChildren(...shown);
  return element;
}

/** An icon beside a text that says the same. */
export function icon(name) {
  const paths = SHAPES[name].map((d) => s("path", { d }));
  return s("svg", { class: "icon", viewBox: "0 0 20 20", "aria-hidden": "true" }, paths);
}

/** A button with an icon and a text; `quiet` shows the text to screen readers alone. */
export function button(text, { shape = null, kind = "", quiet = false, title = null, ...props } = {}, action) {
  return h(
    "button",
    {
      type: "button",
      class: `button ${kind} ${quiet ? "square" : ""}`,
      title: title ?? (quiet ? text : null),
      "aria-label": title,
      on: { click: action },
      ...props,
    },
    shape && icon(shape),
    h("span", { class: quiet ? "hidden-text" : "" }, text),
  );
}

/** Text with names in it, whose lines may end after `_` and the like: words are broken last of all. */
export function breakable(text) {
  const parts = String(text).split(/(?<=[_/-])(?!\s)|(?<=\.)(?=[^\s\d])/);
  return parts.flatMap((part, place) => (place ? [h("wbr"), part] : [part]));
}

/** A class name: text of unknown direction and length. */
export function label(name, props = {}) {
  return h("bdi", { class: "label", title: String(name), ...props }, breakable(name));
}

let next = 0;

/** An id that no other element has. */
export function uid(what) {
  next += 1;
  return `${what}-${next}`;
}

const live = h("div", { class: "hidden-text", role: "status", "aria-live": "polite" });

/** Say something to those who listen to the page. */
export function announce(text) {
  if (!live.isConnected) document.body.append(live);
  live.textContent = text;
}
