// The section "Classes": what is known, what is confused, and what was done.

import { request } from "./api.js";
import { bar } from "./chances.js";
import { classMap } from "./class_map.js";
import { button, fill, h, icon, label, uid } from "./dom.js";
import { ago, bytes, percent } from "./format.js";
import { complain, notice, undoChange } from "./notices.js";
import { onServer, server } from "./server.js";
import { t } from "./strings.js";

const PAIRS = 8; // of confused classes that are shown
const MANY = 12; // classes, from which on they can be searched
const EVENTS = 8; // of the history that are shown at first

export class ClassesSection {
  #shown = false;
  #busy = false; // with a row that is being edited
  #classes = [];

  constructor(teachMore) {
    this.teachMore = teachMore;
    this.facts = h("dl", { class: "facts wide" });
    this.warnings = h("div", { class: "warnings" });
    this.map = h("div", { class: "card map-card" });
    this.pairs = h("div", { class: "card pairs-card" });
    this.search = h("input", { type: "search", class: "field search", placeholder: t.classes.find, "aria-label": t.classes.find, on: { input: () => this.showList() } });
    this.list = h("ul", { class: "class-list" });
    this.history = h("ol", { class: "history" });
    this.element = h(
      "div",
      {},
      this.facts,
      this.warnings,
      h("div", { class: "two" }, this.map, this.pairs),
      h("div", { class: "row between list-head" }, h("h2", {}, t.classes.list), this.search),
      this.list,
      h("h2", {}, t.classes.history),
      this.history,
    );
    onServer("changed", () => this.#shown && this.refresh());
    addEventListener("resize", () => this.#shown && this.redraw?.());
  }

  enter() {
    this.#shown = true;
    this.refresh();
  }

  leave() {
    this.#shown = false;
    this.#busy = false;
  }

  async refresh() {
    try {
      const [known, history] = await Promise.all([request("GET", "classes"), request("GET", "history")]);
      this.#busy = false;
      this.show(known);
      this.showHistory(history);
    } catch (error) {
      if (!server.lost) complain(error);
    }
  }

  show(known) {
    this.#classes = known.classes;
    const { status } = server;
    const facts = [
      [t.classes.number, String(status.classes)],
      [t.classes.samples, status.samples.toLocaleString("en")],
      [t.classes.file, bytes(status.bytes)],
      known.accuracy !== null && [t.classes.expected, percent(known.accuracy), t.classes.expectedHint],
    ].filter(Boolean);
    fill(this.facts, facts.map(([name, value, title]) => h("div", { title }, h("dt", {}, name), h("dd", {}, value))));
    fill(this.warnings, status.warnings.map((text) => h("p", { class: "warning" }, icon("warning"), text)));
    this.showMap(known);
    this.showPairs(known.confused);
    this.search.hidden = this.#classes.length < MANY;
    this.showList();
  }

  showMap(known) {
    this.redraw = () => this.showMap(known);
    const enough = known.classes.length >= 3 && known.classes.some((one) => Number.isFinite(one.x));
    const about = enough ? t.classes.mapAbout : t.classes.noMap;
    fill(this.map, h("h2", {}, t.classes.map), h("p", { class: "muted" }, about));
    const width = this.map.lastChild.clientWidth; // letters keep their size
    if (enough) this.map.append(classMap(known, width, (name) => this.point(name)));
  }

  showPairs(confused) {
    const rows = confused.slice(0, PAIRS).map(({ label: one, taken_for: other, share }) => {
      const pair = h("span", { class: "pair" }, label(one), h("span", { class: "muted" }, t.classes.takenFor), label(other));
      return h("li", {}, pair, h("span", { class: "number" }, percent(share)), bar(share));
    });
    const none = h("p", { class: "muted" }, t.classes.confusedNone);
    fill(this.pairs, h("h2", {}, t.classes.confused), rows.length ? h("ul", { class: "bars pairs" }, rows) : none);
  }

  // ------------------------------------------------------------ one class

  showList() {
    if (this.#busy) return;
    const typed = this.search.value.trim().toLowerCase();
    const found = this.#classes.filter((one) => String(one.label).toLowerCase().includes(typed));
    fill(this.list, found.map((one) => this.row(one)));
    if (!found.length) fill(this.list, h("li", { class: "nothing muted" }, typed ? t.tray.emptyFilter : t.classes.nothing));
  }

  row(one) {
    const row = h("li", { class: "class-row", id: uid("class"), data: { label: String(one.label) }, on: this.pointing(one) });
    return this.plainRow(row, one);
  }

  plainRow(row, one) {
    const name = String(one.label);
    const tools = h(
      "span",
      { class: "row tools" },
      button(t.classes.more, { shape: "plus", kind: "ghost small", quiet: true, title: t.classes.moreOf(name) }, () => this.teachMore(name)),
      button(t.classes.rename, { shape: "pencil", kind: "ghost small", quiet: true, title: t.classes.renameOf(name) }, () => this.rename(row, one)),
      button(t.classes.forget, { shape: "bin", kind: "ghost small", quiet: true, title: t.classes.forgetOf(name) }, () => this.forget(row, one)),
    );
    const near = (one.nearest ?? []).slice(0, 3).map(({ label: other }) => label(other));
    const details = [
      h("span", {}, t.classes.samplesOf(one.samples ?? 0)),
      Number.isFinite(one.accuracy) && h("span", {}, t.classes.correct(one.accuracy)),
      near.length > 0 && h("span", { class: "nearest" }, `${t.classes.nearest} `, near.flatMap((item, place) => (place ? [", ", item] : [item]))),
      (one.warnings ?? []).map((text) => h("span", { class: "warn-text" }, icon("warning"), text)),
    ];
    return fill(row, h("div", { class: "class-text" }, label(name, { class: "label class-name" }), h("p", { class: "muted details" }, details)), server.mayTeach && tools);
  }

  rename(row, one) {
    this.#busy = true;
    const [name, field] = [String(one.label), uid("rename")];
    const input = h("input", { id: field, class: "field", value: name, dir: "auto", maxlength: 200, autocomplete: "off" });
    const done = () => this.leaveRow(row, one, 1);
    const submit = (event) => {
      event.preventDefault();
      const to = input.value.trim();
      if (!to || to === name) return done();
      return this.change(row, one, "rename", { from: name, to }, t.classes.renamed(name, to));
    };
    fill(row, h(
      "form",
      { class: "row-form", on: { submit, keydown: (event) => event.key === "Escape" && done() } },
      h("label", { for: field, class: "hidden-text" }, t.classes.newName),
      input,
      h("button", { type: "submit", class: "button primary" }, t.classes.save),
      button(t.classes.cancel, { kind: "ghost" }, done),
    ));
    input.focus();
    input.select();
  }

  forget(row, one) {
    this.#busy = true;
    const name = String(one.label);
    const yes = button(t.classes.forget, { kind: "danger", title: t.classes.forgetOf(name) }, () => this.change(row, one, "forget", { label: name }, t.classes.forgotten(name)));
    const no = button(t.classes.keep, { kind: "ghost" }, () => this.leaveRow(row, one, 2));
    fill(row, h("div", { class: "row-form", on: { keydown: (event) => event.key === "Escape" && this.leaveRow(row, one, 2) } }, h("span", { class: "class-text" }, t.classes.sure, " ", label(name)), yes, no));
    yes.focus();
  }

  leaveRow(row, one, tool) {
    this.#busy = false;
    this.plainRow(row, one);
    row.querySelectorAll(".tools button")[tool]?.focus();
  }

  async change(row, one, what, json, text) {
    try {
      this.#busy = false;
      await server.change(what, { json: { ...json, revision: server.status.revision } });
      notice(text, { undo: true });
    } catch (error) {
      complain(error);
      this.plainRow(row, one);
    }
  }

  // ------------------------------------------------------------ pointing

  pointing(one) {
    const mark = (on) => () => {
      for (const element of this.map.querySelectorAll("[data-label]")) {
        if (element.dataset.label === String(one.label)) element.classList.toggle("marked", on);
      }
    };
    return { pointerenter: mark(true), pointerleave: mark(false), focusin: mark(true), focusout: mark(false) };
  }

  point(name) {
    this.search.value = "";
    this.showList();
    const row = [...this.list.children].find((one) => one.dataset.label === String(name));
    row?.scrollIntoView({ block: "center", behavior: "smooth" });
    row?.classList.add("marked");
    setTimeout(() => row?.classList.remove("marked"), 2000);
  }

  // ------------------------------------------------------------ history

  showHistory({ events }, most = EVENTS) {
    const newest = [...events].reverse();
    const rows = newest.slice(0, most).map((event, place) => this.event(event, place === 0));
    if (!rows.length) rows.push(h("li", { class: "muted" }, t.classes.historyNone));
    const more = newest.length > most && button(t.classes.showAll(newest.length), { kind: "link" }, () => this.showHistory({ events }, Infinity));
    fill(this.history, rows, more && h("li", {}, more));
  }

  event(event, last) {
    const undo = last && server.mayTeach && server.status.undo && button(t.undo, { kind: "small", shape: "undo" }, () => undoChange());
    return h("li", {}, h("span", { class: "event-text" }, h("bdi", {}, event.text)), h("time", { class: "muted", datetime: event.when, title: event.when }, ago(event.when)), undo);
  }
}
