// One photograph, what it was taken for, and "no, it is …".

import { Refused } from "./api.js";
import { bars, headline, inWords, kindOf } from "./chances.js";
import { announce, button, fill, h, icon, label } from "./dom.js";
import { NameField } from "./name_field.js";
import { complain, undoChange } from "./notices.js";
import { thumbnail } from "./pictures.js";
import { insistently, predict } from "./sending.js";
import { server } from "./server.js";
import { t } from "./strings.js";


export class AnswerCard {
  answer = null;

  constructor(file, { large = false } = {}) {
    this.file = file;
    this.large = large;
    this.body = h("div", { class: "card-body" });
    this.foot = h("p", { class: "muted foot" });
    this.correction = h("div", { class: "correction" });
    this.element = h(
      "article",
      { class: `card answer ${large ? "large" : ""}`, "aria-label": t.pictures.of(file.name) },
      thumbnail(file, file.name),
      h("div", { class: "card-side" }, this.body, this.foot),
      this.correction,
    );
    this.wait(t.answer.working);
  }

  /** It has no answer yet. */
  wait(text) {
    this.element.dataset.state = "waiting";
    fill(this.body, h("p", { class: "headline waiting" }, h("span", { class: "spinner" }), text));
    fill(this.foot, h("bdi", {}, this.file.name));
    fill(this.correction);
  }

  /** What the server said of it. */
  show(answer) {
    if (answer.reason) return this.fail(answer.reason);
    this.answer = answer;
    this.element.dataset.state = kindOf(answer);
    fill(this.body, headline(answer), bars(answer, this.large ? 4 : 2));
    this.footer();
    this.offer();
    return announce(inWords(answer));
  }

  /** It cannot be answered. */
  fail(reason) {
    this.element.dataset.state = "failed";
    fill(this.body, h("p", { class: "headline" }, t.answer.unreadable), h("p", { class: "muted" }, reason));
    announce(`${t.answer.unreadable}: ${reason}`);
  }

  /** The name and the time; when the file has changed since, a way to ask again. */
  footer() {
    if (!this.answer) return;
    const stale = server.status && this.answer.revision !== server.status.revision;
    const again = button(t.answer.again, { kind: "link" }, () => this.askAgain());
    const time = h("span", { class: "time" }, t.answer.took(this.answer.seconds));
    fill(this.foot, h("bdi", {}, this.file.name), " · ", stale ? [t.answer.stale, " ", again] : time);
  }

  async askAgain() {
    this.wait(t.answer.working);
    try {
      const [answer] = await insistently(() => predict([this.file]));
      this.show(answer);
    } catch (error) {
      this.fail(error.message);
    }
  }

  // ------------------------------------------------------------ no, it is …

  /** One click for the likeliest classes; a field for all others. */
  offer() {
    if (!server.mayTeach || !this.answer) return fill(this.correction);
    const names = this.answer.top.map((one) => one.label);
    const said = this.answer.known === false ? null : names[0];
    const others = names.filter((name) => name !== said).slice(0, this.large ? 3 : 2); // one click away
    const other = button(t.correct.other, { kind: "chip" }, () => this.ask());
    const yes = said !== null && names.length > 0 && this.chip(said, t.correct.yes, t.correct.yesTitle(said), "check");
    const question = said === null || !names.length ? t.correct.itIs : t.correct.no;
    return fill(this.correction, yes, h("span", { class: "muted" }, question), others.map((name) => this.chip(name)), other);
  }

  chip(name, text = null, title = t.correct.as(name), shape = null) {
    const learn = () => this.learn(name);
    const props = { type: "button", class: "button chip", title, "aria-label": title, on: { click: learn } };
    return h("button", props, shape && icon(shape), text ?? label(name));
  }

  /** A field for a class that is not offered. */
  ask() {
    const field = new NameField(t.correct.label, { chosen: (name) => this.learn(name) });
    const form = h(
      "form",
      {
        class: "correct-form",
        on: {
          submit: (event) => {
            event.preventDefault();
            if (field.value) this.learn(field.value);
          },
          keydown: (event) => event.key === "Escape" && this.offer(),
        },
      },
      field.element,
      h("button", { type: "submit", class: "button primary" }, t.correct.learn),
      button(t.correct.cancel, { kind: "ghost" }, () => this.offer()),
    );
    fill(this.correction, form);
    field.input.focus();
  }

  /** Add the photograph to a class, known or new. */
  async learn(name) {
    fill(this.correction, h("span", { class: "spinner" }), t.correct.learning);
    try {
      const { learned, revision } = await this.send(name);
      if (learned) this.taughtAs(name, revision);
      else fill(this.correction, h("span", { class: "learned" }, t.correct.already, " ", label(name)));
      announce(this.correction.innerText);
    } catch (error) {
      complain(error);
      this.offer();
    }
  }

  async send(name) {
    try {
      return await server.change("learn", { json: { name, ids: [this.answer.id] } });
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 410) throw error;
      const [again] = await predict([this.file]); // the server has forgotten it
      this.answer.id = again.id;
      return server.change("learn", { json: { name, ids: [again.id] } });
    }
  }

  taughtAs(name, revision) {
    this.element.dataset.taught = name;
    const undo = button(t.undo, { kind: "small", shape: "undo" }, async () => {
      if (!(await undoChange(revision))) return;
      this.offer();
      this.correction.querySelector("button")?.focus();
    });
    const said = h("span", { class: "learned", tabindex: -1 }, icon("check"), t.correct.learned, " ", label(name));
    const canUndo = Boolean(server.status?.undo); // not the first lesson of a file
    fill(this.correction, said, canUndo && undo);
    (canUndo ? undo : said).focus();
  }
}
