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

/** An answer as it is read out. */
export function inWords(answer) {
  if (!answer.top.length) return t.answer.empty;
  const [first] = answer.top;
  if (answer.known === false) return t.answer.saidNone(first.label);
  return t.answer.said(first.label, first.probability);
}

/** The answer in large letters. */
export function headline(answer) {
  const kind = kindOf(answer);
  const [first] = answer.top;
  if (kind === "empty") return h("p", { class: "headline" }, t.answer.empty);
  if (kind === "unknown") {
    const nearest = [t.answer.nearest, " ", label(first.label), ", ", percent(first.probability), " ", t.answer.nearestNote];
    return h("div", { class: "headline unknown" }, h("p", { class: "what" }, t.answer.none), h("p", { class: "muted" }, nearest));
  }
  return h(
    "div",
    { class: `headline ${kind}` },
    h("p", { class: "what" }, kind === "unsure" && h("span", { class: "perhaps" }, `${t.answer.perhaps} `), label(first.label)),
    h("p", { class: "chance" }, percent(first.probability)),
  );
}

/** Bars of the likeliest classes. */
export function bars(answer, most = 4) {
  const rows = answer.top.slice(0, most).map(({ label: name, probability }) => {
    const bar = h("span", { class: "bar" });
    bar.style.setProperty("--share", probability);
    return h("li", {}, label(name), h("span", { class: "number" }, percent(probability)), bar);
  });
  const dim = answer.known === false ? "dim" : "";
  return h("ul", { class: `bars ${dim}`, "aria-label": t.answer.chances }, rows);
}
