// One class in the list: what is known of it, and forms to rename or forget it.

import { breakable, button, fill, h, icon, label, uid } from "./dom.js";
import { sentence } from "./format.js";
import { complain, notice } from "./notices.js";
import { server } from "./server.js";
import { t } from "./strings.js";

const [RENAME, FORGET] = [1, 2]; // places of the buttons

export class ClassRow {
  constructor(one, { teachMore, editing }) {
    this.one = one;
    this.name = String(one.label);
    this.teachMore = teachMore;
    this.editing = editing; // tells that nobody else may draw the list now
    this.element = h("li", { class: "class-row", data: { label: this.name } });
    this.show();
  }

  show() {
    const text = h("div", { class: "class-text" }, label(this.name, { class: "label class-name" }), this.details());
    fill(this.element, text, server.mayTeach && this.tools());
  }

  details() {
    const { samples, accuracy, interval, nearest = [], warnings = [] } = this.one;
    const near = nearest.slice(0, 3).flatMap(({ label: other }, place) => [place ? ", " : "", label(other)]);
    return h(
      "p",
      { class: "muted details" },
      h("span", {}, t.classes.samplesOf(samples ?? 0)),
      Number.isFinite(accuracy) && h("span", {}, t.classes.accuracy(accuracy, interval)),
      near.length > 0 && h("span", {}, `${t.classes.nearest} `, near),
      warnings.map((text) => h("span", { class: "warn-text" }, icon("warning"), h("span", {}, breakable(sentence(text))))),
    );
  }

  tools() {
    const tool = (text, shape, title, action) =>
      button(text, { shape, kind: "ghost small", quiet: true, title: title(this.name) }, action);
    return h(
      "span",
      { class: "row tools" },
      tool(t.classes.more, "plus", t.classes.moreOf, () => this.teachMore(this.name)),
      tool(t.classes.rename, "pencil", t.classes.renameOf, () => this.rename()),
      tool(t.classes.forget, "bin", t.classes.forgetOf, () => this.forget()),
    );
  }

  rename() {
    const field = uid("rename");
    const input = h("input", { id: field, class: "field", value: this.name, dir: "auto", maxlength: 200, autocomplete: "off" });
    const submit = (event) => {
      event.preventDefault();
      const to = input.value.trim();
      if (!to || to === this.name) return this.leave(RENAME);
      return this.change("rename", { from: this.name, to }, t.classes.renamed(this.name, to), (error) => {
        const join = button(t.classes.join(this.name, to), { kind: "small" }, () => this.join(to));
        fill(problem, error.message, " ", server.names.has(to) && join);
        problem.hidden = false;
        input.focus();
      });
    };
    const problem = h("p", { class: "bad-text", role: "alert", hidden: true });
    this.edit(
      h(
        "form",
        { class: "row-form", on: { submit, keydown: (event) => event.key === "Escape" && this.leave(RENAME) } },
        h("label", { for: field, class: "hidden-text" }, t.classes.newName),
        input,
        h("button", { type: "submit", class: "button primary" }, t.classes.save),
        button(t.classes.cancel, { kind: "ghost" }, () => this.leave(RENAME)),
        problem,
      ),
      input,
    );
    input.select();
  }

  /** Make it part of another class. */
  join(other) {
    return this.change("merge-classes", { label: other, other: this.name }, t.classes.joined(this.name, other));
  }

  forget() {
    const title = t.classes.forgetOf(this.name);
    const told = t.classes.forgotten(this.name);
    const yes = button(t.classes.forget, { kind: "danger", title }, () => this.change("forget", { label: this.name }, told));
    this.edit(
      h(
        "div",
        { class: "row-form", on: { keydown: (event) => event.key === "Escape" && this.leave(FORGET) } },
        h("span", { class: "class-text" }, t.classes.sure, " ", label(this.name), "?"),
        yes,
        button(t.classes.keep, { kind: "ghost" }, () => this.leave(FORGET)),
      ),
      yes,
    );
  }

  edit(form, first) {
    this.editing(true);
    fill(this.element, form);
    first.focus();
  }

  leave(tool) {
    this.editing(false);
    this.show();
    this.element.querySelectorAll(".tools button")[tool]?.focus();
  }

  /** Change the file, unless somebody else has changed it meanwhile; whether that was done. */
  async change(what, json, text, refused = complain) {
    try {
      await server.change(what, { json: { ...json, revision: server.status.revision } });
    } catch (error) {
      refused(error);
      return;
    }
    this.editing(false);
    notice(text, { undo: true });
  }
}
