// Which class is meant? A text field that offers the known ones (the ARIA pattern "combobox").

import { fill, h, icon, label, uid } from "./dom.js";
import { server } from "./server.js";
import { t } from "./strings.js";

const MOST = 7;

let pressed = false; // whether a pointer is down
addEventListener("pointerdown", () => (pressed = true), true);
for (const event of ["pointerup", "pointercancel"]) addEventListener(event, () => (pressed = false), true);

export class NameField {
  #active = -1;
  #offers = [];

  constructor(title, { chosen = () => {}, changed = () => {} } = {}) {
    this.chosen = chosen;
    this.changed = changed;
    const [field, list] = [uid("name"), uid("names")];
    this.list = h("ul", { class: "offers", id: list, role: "listbox", "aria-label": t.names.offers, hidden: true });
    this.input = h("input", {
      id: field,
      type: "text",
      class: "field",
      placeholder: t.names.placeholder,
      autocomplete: "off",
      autocapitalize: "none",
      spellcheck: "false",
      maxlength: 200,
      dir: "auto",
      role: "combobox",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": list,
      on: {
        input: () => this.#typed(),
        click: () => this.open(),
        blur: () => this.#left(),
        keydown: (event) => this.#key(event),
      },
    });
    this.near = h("p", { class: "near muted", hidden: true });
    this.element = h(
      "div",
      { class: "name-field" },
      h("label", { for: field, class: "field-label" }, title),
      h("div", { class: "anchor" }, this.input, this.list),
      this.near,
    );
  }

  /** What was typed; a known name as it is known, whatever its case. */
  get value() {
    const typed = this.input.value.trim();
    return server.names.has(typed) ? typed : (spelled(typed) ?? typed);
  }

  set value(name) {
    this.input.value = name;
    this.#close();
    this.#hint();
    this.changed();
  }

  #typed() {
    this.#active = -1;
    this.open();
    this.#hint();
    this.changed();
  }

  open() {
    const typed = this.value.toLowerCase();
    const names = [...server.names.keys()].filter((name) => name.toLowerCase().includes(typed));
    names.sort((a, b) => rank(a, typed) - rank(b, typed) || a.localeCompare(b));
    const similar = near(this.value, names.length ? [] : [...server.names.keys()]);
    this.#offers = similar ? [similar] : names.slice(0, MOST);
    if (this.value && !server.names.has(this.value)) this.#offers.push(this.value);
    fill(this.list, this.#offers.map((name, place) => this.#offer(name, place)));
    this.#show(this.#offers.length > 0);
  }

  #offer(name, place) {
    const samples = server.names.get(name);
    const note = samples === undefined ? t.names.fresh : t.names.known(samples);
    return h(
      "li",
      {
        role: "option",
        id: `${this.list.id}-${place}`,
        "aria-selected": String(place === this.#active),
        on: {
          pointerdown: (event) => {
            event.preventDefault(); // the field keeps the focus
            this.#choose(name);
          },
        },
      },
      samples === undefined && icon("plus"),
      label(name),
      h("span", { class: "note" }, note),
    );
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      if (this.list.hidden) this.open();
      const all = this.#offers.length + 1; // the last place is the text itself
      this.#active = ((this.#active + step + 1 + all) % all) - 1;
      this.#mark();
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.#choose(this.#offers[this.#active] ?? this.value);
    } else if (event.key === "Escape" && !this.list.hidden) {
      event.stopPropagation();
      this.#close();
    }
  }

  #mark() {
    [...this.list.children].forEach((item, place) => {
      item.setAttribute("aria-selected", String(place === this.#active));
    });
    const active = this.list.children[this.#active];
    active?.scrollIntoView({ block: "nearest" });
    if (active) this.input.setAttribute("aria-activedescendant", active.id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  #choose(name) {
    this.value = name;
    if (name) this.chosen(name);
  }

  #hint() {
    const other = near(this.value, [...server.names.keys()]);
    this.near.hidden = !other;
    if (!other) return;
    const use = h("button", { type: "button", class: "link", on: { click: () => (this.value = other) } }, t.names.use(other));
    fill(this.near, t.names.near(other), " ", use);
  }

  /** What is below may move when the list closes: not while a button there is pressed. */
  #left() {
    const close = () => document.activeElement !== this.input && this.#close();
    if (pressed) addEventListener("pointerup", () => setTimeout(close), { once: true });
    else this.#close();
  }

  #close() {
    this.#active = -1;
    this.#show(false);
  }

  #show(shown) {
    this.list.hidden = !shown;
    this.input.setAttribute("aria-expanded", String(shown));
    if (!shown) this.input.removeAttribute("aria-activedescendant");
  }
}

/** The known name that differs from this one only in upper and lower case. */
function spelled(name) {
  const plain = name.toLowerCase();
  return [...server.names.keys()].find((known) => known.toLowerCase() === plain);
}

function rank(name, typed) {
  return name.toLowerCase().startsWith(typed) ? 0 : 1;
}

/** A known name that is written nearly like this one, and is another. */
export function near(name, known) {
  if (!name || known.includes(name)) return null;
  const plain = bare(name);
  return known.find((other) => bare(other) === plain || oneAway(bare(other), plain)) ?? null;
}

function bare(name) {
  return name.toLowerCase().replace(/[\s_-]+/g, "");
}

/** Whether long names differ by one letter. */
function oneAway(a, b) {
  if (Math.min(a.length, b.length) < 5 || Math.abs(a.length - b.length) > 1) return false;
  let start = 0;
  while (start < a.length && a[start] === b[start]) start += 1;
  const rest = (text, skip) => text.slice(start + skip);
  return [[1, 1], [1, 0], [0, 1]].some(([i, j]) => rest(a, i) === rest(b, j));
}
