// What came of a lesson: what was learned, how the file grew, and what is confused now.

import { breakable, button, h, icon, label } from "./dom.js";
import { bytes, percent, seconds, sentence } from "./format.js";
import { undoChange } from "./notices.js";
import { server } from "./server.js";
import { t } from "./strings.js";

const SHOWN = 5; // photographs that cannot be read, each with the reason

/** A card about what the server said; `more` goes on with this class. */
export function lessonResult(said, more) {
  const { before, after } = said;
  const facts = [
    [t.teach.file, `${bytes(before.bytes)} → ${bytes(after.bytes)}`],
    [t.teach.classes, `${before.classes} → ${after.classes}`],
    [t.teach.samples, String(after.samples)],
    [t.teach.time, seconds(said.seconds)],
  ];
  const undo = button(t.undo, { shape: "undo" }, () => undoChange(said.revision));
  const again = button(t.classes.more, { shape: "plus", title: t.classes.moreOf(said.label) }, more);
  const known = `${said.new ? t.teach.done : t.teach.doneMore} `;
  return h(
    "article",
    { class: "card result-card", tabindex: -1 },
    h("p", { class: "what" }, h("span", { class: "tick" }, icon("check")), known, label(said.label)),
    h("p", { class: "muted" }, summary(said)),
    h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    confusion(said, after.classes),
    said.unreadable.slice(0, SHOWN).map(({ input, reason }) => h("p", { class: "warn-text" }, icon("warning"), h("bdi", {}, breakable(`${input}: ${reason}`)))),
    said.near && h("p", { class: "muted" }, t.names.near(said.near)),
    said.warnings.map((text) => h("p", { class: "warn-text" }, icon("warning"), h("span", {}, breakable(sentence(text))))),
    h("div", { class: "row" }, said.learned > 0 && server.status?.undo && undo, again, h("a", { class: "button", href: "#ask" }, t.teach.tryIt)),
  );
}

function summary({ learned, already, unreadable, moved, gone }) {
  if (!learned) return t.teach.nothing;
  const parts = [t.teach.learned(learned)];
  if (already) parts.push(t.teach.already(already));
  for (const [other, number] of Object.entries(moved)) parts.push(t.teach.moved(number, other, gone.includes(other)));
  if (unreadable.length) parts.push(t.teach.unreadable(unreadable.length));
  return parts.join(", ");
}

function confusion({ confused, interval }, classes) {
  if (classes < 2) return h("p", { class: "muted" }, t.teach.confusesUnknown);
  if (!confused.length) return h("p", { class: "muted" }, interval ? t.teach.confusesNothing : t.teach.confusesPerhaps);
  const items = confused.map(({ label: other, share }) => h("li", {}, label(other), h("span", { class: "number" }, percent(share))));
  return h("div", { class: "confuses" }, h("p", { class: "field-label" }, t.teach.confuses), h("ul", { class: "pairs" }, items));
}
