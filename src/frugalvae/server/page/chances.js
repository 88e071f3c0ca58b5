// How is an answer shown? The class in large letters, the next ones as bars.

import { h, label } from "./dom.js";
import { percent } from "./format.js";
import { t } from "./strings.js";

export const SURE = 0.6; // less than this is "perhaps"

/** What kind of answer it is: "sure", "unsure", "unknown", or "empty" if there is no class. */
export function kindOf(answer) {
  if (!answer.top.length) return "empty";
  if (answer.known === false) return "unknown";
  return answer.top[0].probability < SURE ? "unsure" : "sure";
}

/** Whether one class alone is known: it is as likely as can be, which says nothing. */
export function isAlone(answer) {
  return answer.top.length === 1;
}

/** An answer as it is read out. */
export function inWords(answer) {
  if (!answer.top.length) return t.answer.empty;
  const [first] = answer.top;
  if (answer.known === false) return t.answer.saidNone(first.label, t.answer.far(answer.familiarity));
  return isAlone(answer) ? String(first.label) : t.answer.said(first.label, first.probability);
}

/** The answer in large letters. */
export function headline(answer) {
  const kind = kindOf(answer);
  const [first] = answer.top;
  if (kind === "empty") return h("p", { class: "headline" }, t.answer.empty);
  if (kind === "unknown") {
    const [what, next] = isAlone(answer) ? [[t.answer.unlike, " ", label(first.label)], t.answer.alone] : [t.answer.none, t.answer.nearest];
    const far = h("p", { class: "far" }, t.answer.far(answer.familiarity));
    return h("div", { class: "headline unknown" }, h("p", { class: "what" }, what), far, h("p", { class: "muted" }, next));
  }
  if (isAlone(answer)) return h("div", { class: "headline" }, h("p", { class: "what" }, label(first.label)), h("p", { class: "muted" }, t.answer.alone));
  return h(
    "div",
    { class: `headline ${kind}` },
    h("p", { class: "what" }, kind === "unsure" && h("span", { class: "perhaps" }, `${t.answer.perhaps} `), label(first.label)),
    h("p", { class: "chance" }, percent(first.probability)),
    bar(first.probability),
    kind === "unsure" && h("p", { class: "muted" }, h("bdi", {}, t.answer.between(first.label, answer.top[1].label))),
  );
}

/** A bar of a share. */
export function bar(share) {
  const element = h("span", { class: "bar" });
  element.style.setProperty("--share", share);
  return element;
}

/** Bars of the classes that come next; of the nearest ones, if it is none of them. */
export function bars(answer, most = 4) {
  const start = answer.known === false ? 0 : 1;
  if (isAlone(answer)) return null;
  const rows = answer.top.slice(start, start + most).map(({ label: name, probability }) =>
    h("li", {}, label(name), h("span", { class: "number" }, percent(probability)), bar(probability)),
  );
  const dim = answer.known === false ? "dim" : "";
  return h("ul", { class: `bars ${dim}`, "aria-label": t.answer.chances }, rows);
}
