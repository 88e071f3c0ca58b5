// The section "Classes": what is known, what is confused, and what was done.

import { request } from "./api.js";
import { bar } from "./chances.js";
import { classMap } from "./class_map.js";
import { ClassRow } from "./class_row.js";
import { breakable, button, fill, h, icon, label } from "./dom.js";
import { ago, bytes, percent, sentence } from "./format.js";
import { complain, undoChange } from "./notices.js";
import { onServer, server } from "./server.js";
import { t } from "./strings.js";

const PAIRS = 8; // of confused classes that are shown
const FEW = 5; // classes of too few photographs that are named
const MANY = 12; // classes, from which on they can be searched
const ROWS = 100; // classes that are listed at first
const EVENTS = 8; // of the history that are shown at first
const POINTING = [
  ["pointerenter", true],
  ["pointerleave", false],
  ["focusin", true],
  ["focusout", false],
];

export class ClassesSection {
  #shown = false;
  #busy = false; // with a row that is being edited
  #late = false; // the list is to be drawn anew when that is done
  #classes = [];

  constructor(teachMore) {
    this.teachMore = teachMore;
    this.facts = h("dl", { class: "facts wide" });
    this.caution = h("p", { class: "muted caution", hidden: true });
    this.warnings = h("div", { class: "warnings" });
    this.map = h("div", { class: "card map-card" });
    this.pairs = h("div", { class: "card pairs-card" });
    this.search = h("input", { type: "search", class: "field search", placeholder: t.classes.find, "aria-label": t.classes.find, on: { input: () => this.showList() } });
    this.list = h("ul", { class: "class-list" });
    this.history = h("ol", { class: "history" });
    this.nothing = h("p", { class: "hint", hidden: true }, t.classes.nothing);
    this.known = h(
      "div",
      { hidden: true },
      this.facts,
      this.caution,
      this.warnings,
      h("div", { class: "two" }, this.map, this.pairs),
      h("div", { class: "row between list-head" }, h("h2", {}, t.classes.list), this.search),
      this.list,
    );
    this.element = h(
      "div",
      {},
      this.nothing,
      this.known,
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
      if (!server.status) await server.refresh(); // the page was opened here
      const [known, history] = await Promise.all([request("GET", "classes"), request("GET", "history")]);
      if (!server.status) return;
      this.show(known);
      this.showHistory(history);
    } catch (error) {
      if (!server.lost) complain(error);
    }
  }

  show(known) {
    this.#classes = known.classes;
    this.known.hidden = !known.classes.length;
    this.nothing.hidden = known.classes.length > 0;
    const { status } = server;
    const facts = [
      [t.classes.number, String(status.classes)],
      [t.classes.samples, status.samples.toLocaleString("en")],
      [t.classes.file, bytes(status.bytes)],
      known.accuracy !== null && [t.classes.expected, known.interval ? t.classes.about(known.accuracy, known.interval) : t.classes.expectedNone],
    ].filter(Boolean);
    fill(this.facts, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
    this.caution.hidden = known.accuracy === null;
    fill(this.caution, known.interval ? t.classes.expectedHint : t.classes.expectedFew);
    fill(this.warnings, status.warnings.map((text) => h("p", { class: "warning" }, icon("warning"), h("span", {}, breakable(sentence(text))))));
    this.showMap(known);
    this.showPairs(known);
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

  showPairs({ confused, classes }) {
    const rows = confused.slice(0, PAIRS).map(({ label: one, taken_for: other, share }) => {
      const pair = h("span", { class: "pair" }, label(one), h("span", { class: "muted" }, t.classes.takenFor), label(other));
      return h("li", {}, pair, h("span", { class: "number" }, percent(share)), bar(share));
    });
    fill(this.pairs, h("h2", {}, t.classes.confused), rows.length > 0 && h("ul", { class: "bars pairs" }, rows), this.untested(classes, rows.length > 0));
  }

  /** What cannot be said of confusions, and of which classes. */
  untested(classes, some) {
    const few = classes.filter((one) => !one.interval);
    if (!few.length) return some ? null : h("p", { class: "muted" }, t.classes.confusedNone);
    if (few.length === classes.length) return h("p", { class: "muted" }, some ? t.classes.testedUnsure : t.classes.testedNone);
    const names = few.slice(0, FEW).flatMap((one, place) => [place ? ", " : "", label(one.label)]);
    const rest = few.length > FEW ? t.classes.andMore(few.length - FEW) : "";
    return h("p", { class: "muted" }, some ? "" : `${t.classes.confusedOthers} `, `${t.classes.testedFew} `, names, rest);
  }

  // ------------------------------------------------------------ the list

  /** While a row is edited, the list stays as it is. */
  edit(busy) {
    this.#busy = busy;
    if (!busy && this.#late) this.showList();
  }

  showList(most = ROWS) {
    this.#late = this.#busy;
    if (this.#busy) return;
    const typed = this.search.value.trim().toLowerCase();
    const found = this.#classes.filter((one) => String(one.label).toLowerCase().includes(typed));
    const more = found.length > most && button(t.classes.showAll(found.length), { kind: "link" }, () => this.showList(Infinity));
    fill(this.list, found.slice(0, most).map((one) => this.row(one)), more && h("li", { class: "class-row" }, more));
    if (!found.length) fill(this.list, h("li", { class: "nothing muted" }, t.tray.emptyFilter));
  }

  row(one) {
    const row = new ClassRow(one, {
      teachMore: this.teachMore,
      editing: (busy) => this.edit(busy),
    });
    for (const [event, on] of POINTING) row.element.addEventListener(event, () => this.mark(one, on));
    return row.element;
  }

  // ------------------------------------------------------------ pointing

  /** Show on the map which class is pointed at in the list. */
  mark(one, on) {
    for (const element of this.map.querySelectorAll("[data-label]")) {
      if (element.dataset.label === String(one.label)) element.classList.toggle("marked", on);
    }
  }

  /** Show in the list which class was clicked on the map. */
  point(name) {
    this.search.value = "";
    this.showList(Infinity);
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
    const none = server.mayTeach && events.length > 0 && !server.status.undo && h("li", { class: "muted" }, t.nothingToUndo, ". ", t.oneStep);
    fill(this.history, none, rows, more && h("li", {}, more));
  }

  event(event, last) {
    const undo = last && server.mayTeach && server.status.undo && button(t.undo, { kind: "small", shape: "undo" }, () => undoChange());
    return h("li", {}, h("span", { class: "event-text" }, h("bdi", {}, breakable(t.event(event)))), h("time", { class: "muted", datetime: event.when, title: event.when }, ago(event.when)), undo);
  }
}
