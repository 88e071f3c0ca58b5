// The section "Tray": what was asked lately, to be assigned to classes, several at once.

import { request } from "./api.js";
import { isAlone, kindOf } from "./chances.js";
import { button, fill, h, icon, label } from "./dom.js";
import { percent } from "./format.js";
import { NameField } from "./name_field.js";
import { complain, notice } from "./notices.js";
import { onServer, server } from "./server.js";
import { t } from "./strings.js";

const EVERY = 3000; // milliseconds
const FILTERS = ["all", "unsure", "unknown", "taught"];
const DOUBT = 0.5; // from which on a picture is between two classes
const NOTHING = { suggestions: [], groups: [] };

export class TraySection {
  #questions = [];
  #pictures = new Map(); // addresses of small pictures, by question
  #selected = new Set();
  #filter = "all";
  #telling = false; // what would teach most comes first
  #last = null; // the question that was clicked last, for Shift
  #timer = null;

  constructor() {
    this.about = h("p", { class: "muted about" });
    this.filters = h("div", { class: "segments", role: "group", "aria-label": t.tray.filter });
    this.tools = h("div", { class: "row" });
    this.alike = h("p", { class: "row alike", hidden: true });
    this.order = button(t.tray.telling, { kind: "small toggle", title: t.tray.tellingTitle, "aria-pressed": "false" }, () => this.sort());
    this.grid = h("ul", { class: "tray" });
    this.name = new NameField(t.tray.assignLabel, { chosen: () => this.assign() });
    this.bar = h("form", { class: "assign", hidden: true, on: { submit: (event) => event.preventDefault() } });
    this.number = h("span", { class: "selected-number", role: "status" });
    this.assignButton = button(t.tray.assign, { kind: "primary" }, () => this.assign());
    this.element = h("div", {}, this.about, h("div", { class: "row between tray-head" }, this.filters, this.tools), this.alike, this.grid, this.bar);
    onServer("status", () => this.showAbout());
    onServer("changed", () => this.#timer && this.refresh());
  }

  enter() {
    this.refresh();
    this.#timer = setInterval(() => !document.hidden && this.refresh(), EVERY);
  }

  leave() {
    clearInterval(this.#timer);
    this.#timer = null;
  }

  async refresh() {
    try {
      const [{ questions }, suggested] = await Promise.all([request("GET", "recent"), this.#telling ? request("GET", "suggest") : NOTHING]);
      this.take(questions, suggested);
    } catch {
      // a lost server is told by the banner; what is shown stays
    }
  }

  take(questions, suggested) {
    const rank = new Map(suggested.suggestions.map((one, place) => [one.id, { place, why: doubtOf(one) }]));
    const found = questions.map((one) => ({ ...one, ...rank.get(one.id) }));
    if (this.#telling) found.sort((a, b) => (a.place ?? Infinity) - (b.place ?? Infinity) || 0);
    const same = JSON.stringify(found.map(visible)) === JSON.stringify(this.#questions.map(visible));
    this.#questions = found;
    this.showAlike(suggested.groups);
    const there = new Set(questions.map((one) => one.id));
    for (const id of this.#selected) if (!there.has(id)) this.#selected.delete(id);
    for (const [id, url] of this.#pictures) {
      if (there.has(id)) continue;
      URL.revokeObjectURL(url);
      this.#pictures.delete(id);
    }
    if (!same || !this.grid.childElementCount) this.show();
  }

  /** Show first what would teach most, or what was asked last. */
  sort() {
    this.#telling = !this.#telling;
    this.order.setAttribute("aria-pressed", String(this.#telling));
    return this.refresh();
  }

  // ------------------------------------------------------------ what is shown

  showAlike(groups) {
    const select = (ids) => {
      ids.forEach((id) => this.#selected.add(id));
      this.show();
      this.name.input.focus();
    };
    this.alike.hidden = !groups.length || !server.mayTeach;
    fill(this.alike, h("span", { class: "muted" }, t.tray.perhapsNew), groups.map((ids) => button(t.tray.alike(ids.length), { kind: "chip" }, () => select(ids))));
  }

  showAbout() {
    const { seconds, folder } = server.status.keep;
    const time = seconds >= 120 ? t.tray.minutes(Math.round(seconds / 60)) : t.tray.seconds(seconds);
    fill(this.about, t.tray.kept(time), " ", folder ? t.tray.onDisk : t.tray.notOnDisk);
  }

  fits(question, filter) {
    if (filter === "all") return true;
    if (filter === "taught") return question.taught !== null;
    return question.taught === null && kindOf(question) === filter;
  }

  shown() {
    return this.#questions.filter((one) => this.fits(one, this.#filter));
  }

  show() {
    const focused = document.activeElement?.closest?.("[data-question]")?.dataset.question;
    fill(this.filters, FILTERS.map((filter) => this.segment(filter)));
    const shown = this.shown();
    fill(this.grid, shown.map((question) => this.tile(question)));
    if (!shown.length) fill(this.grid, h("li", { class: "nothing muted" }, this.#questions.length ? t.tray.emptyFilter : t.tray.empty));
    const all = shown.length > 0 && shown.every((one) => this.#selected.has(one.id));
    const select = button(all ? t.tray.selectNone : t.tray.selectAll, { kind: "ghost small" }, () => this.selectAll(!all));
    const clear = button(t.tray.clear, { kind: "ghost small", shape: "bin" }, () => this.clear());
    fill(this.tools, this.#questions.length > 1 && server.names.size > 0 && this.order, shown.length > 0 && server.mayTeach && select, this.#questions.length > 0 && clear);
    this.showBar();
    if (focused) this.grid.querySelector(`[data-question="${CSS.escape(focused)}"] input`)?.focus();
  }

  segment(filter) {
    const number = this.#questions.filter((one) => this.fits(one, filter)).length;
    const choose = () => {
      this.#filter = filter;
      this.show();
      [...this.filters.children][FILTERS.indexOf(filter)].focus();
    };
    return h(
      "button",
      { type: "button", "aria-pressed": String(filter === this.#filter), on: { click: choose } },
      t.tray[filter],
      h("span", { class: "note" }, String(number)),
    );
  }

  tile(question) {
    const kind = kindOf(question);
    const said = kind === "unknown" ? t.answer.none : String(question.label ?? question.top[0]?.label ?? t.answer.empty);
    const box = h("input", {
      type: "checkbox",
      checked: this.#selected.has(question.id),
      "aria-label": t.tray.select(question.taught ? t.tray.learnedAs(question.taught) : t.tray.asSaid(said)),
      on: { click: (event) => this.select(question, event) },
    });
    const chance = question.top[0]?.probability;
    return h(
      "li",
      { class: `tile ${kind}`, data: { question: question.id } },
      h(
        "label",
        {},
        this.picture(question),
        box,
        h("span", { class: "tick" }, icon("check")),
        h("span", { class: "tile-text" }, question.taught ? [icon("check"), label(question.taught)] : label(said)),
        h("span", { class: "note" }, question.taught || isAlone(question) || chance === undefined || kind === "unknown" ? "" : percent(chance)),
        question.why && h("span", { class: "note because" }, question.why),
      ),
    );
  }

  picture(question) {
    const image = h("img", { alt: "" });
    const known = this.#pictures.get(question.id);
    if (known) image.src = known;
    else this.load(question.id, image);
    return h("span", { class: "picture" }, image);
  }

  async load(id, image) {
    try {
      const blob = await request("GET", `recent/${encodeURIComponent(id)}/picture`, { as: "blob" });
      this.#pictures.set(id, URL.createObjectURL(blob));
      image.src = this.#pictures.get(id);
    } catch {
      // it is gone, and will not be in the next list
    }
  }

  // ------------------------------------------------------------ several at once

  select(question, event) {
    const ids = this.shown().map((one) => one.id);
    const [a, b] = [ids.indexOf(question.id), ids.indexOf(this.#last)];
    const range = event.shiftKey && b >= 0 ? ids.slice(Math.min(a, b), Math.max(a, b) + 1) : [question.id];
    for (const id of range) event.target.checked ? this.#selected.add(id) : this.#selected.delete(id);
    this.#last = question.id;
    if (range.length > 1) this.show();
    else this.showBar();
  }

  selectAll(all) {
    for (const { id } of this.shown()) all ? this.#selected.add(id) : this.#selected.delete(id);
    this.show();
  }

  showBar() {
    const number = this.#selected.size;
    this.bar.hidden = !number;
    fill(this.number, t.tray.selected(number));
    if (this.bar.childElementCount) return;
    const drop = button(t.tray.drop, { kind: "ghost", shape: "bin" }, () => this.remove([...this.#selected]));
    fill(this.bar, this.number, server.mayTeach && [this.name.element, this.assignButton], drop);
  }

  async assign() {
    const [name, ids] = [this.name.value, [...this.#selected]];
    if (!name) return this.name.input.focus();
    this.assignButton.disabled = true;
    try {
      const { learned, gone } = await server.change("learn", { json: { name, ids } });
      this.#selected.clear();
      this.name.value = "";
      notice(learned ? t.tray.assigned(learned, name, gone) : t.teach.nothing, { undo: learned > 0 });
    } catch (error) {
      complain(error.status === 410 ? new Error(t.tray.gone) : error);
    }
    this.assignButton.disabled = false;
    return this.refresh().then(() => this.show());
  }

  async remove(ids) {
    try {
      await request("POST", "recent/clear", { json: { ids } });
    } catch (error) {
      complain(error);
    }
    this.#selected.clear();
    await this.refresh();
  }

  async clear() {
    await this.remove(this.#questions.map((one) => one.id));
    notice(t.tray.cleared);
  }
}

/** The two classes that it is between, if it is. */
function doubtOf({ known, doubt, label: one, runner_up: other }) {
  return known && doubt > DOUBT && other !== null ? t.tray.between(one, other) : null;
}

/** What of a question is seen: when it is the same, nothing is drawn anew. */
function visible({ id, label: said, top, taught, why }) {
  return [id, said, top[0]?.probability, taught, why];
}
