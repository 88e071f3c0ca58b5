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
import { explanation } from "./why.js";

/** What decides which classes a card offers. */
const offered = ({ known, top }) => JSON.stringify([known, top.map((one) => one.label)]);

export class AnswerCard {
  answer = null;
  #lesson = null; // the state of the file that this photograph made when it was learned here
  #learning = false;
  #gone = []; // classes that went away when it was
  #open = false; // whether the reasons are shown

  constructor(file, { large = false } = {}) {
    this.file = file;
    this.large = large;
    this.body = h("div", { class: "card-body" });
    this.foot = h("p", { class: "muted foot" });
    this.correction = h("div", { class: "correction" });
    this.undo = button(t.undo, { kind: "small", shape: "undo", hidden: true }, () => this.takeBack());
    this.why = h("div", { class: "why" });
    this.element = h(
      "article",
      { class: `card answer ${large ? "large" : ""}`, "aria-label": t.pictures.of(file.name) },
      thumbnail(file, file.name),
      h("div", { class: "card-side" }, this.body, this.foot),
      this.correction,
      this.why,
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
    this.take(answer);
    this.offer();
    return announce(inWords(answer));
  }

  /** What the server says of it since the file has changed. What is being typed stays. */
  renew(answer) {
    const before = this.answer;
    const focused = this.correction.contains(document.activeElement);
    const typing = focused && this.correction.querySelector("form");
    this.take({ ...answer, seconds: before.seconds });
    const same = focused && offered(answer) === offered(before);
    if (answer.taught === before.taught && (this.#learning || typing || same)) return;
    this.offer();
    if (focused) this.correction.querySelector("button:not([hidden])")?.focus();
  }

  take(answer) {
    this.answer = answer;
    this.element.dataset.state = kindOf(answer);
    this.draw();
    if (this.#open && answer.top.length > 1) this.#giveReasons(); // what is shown follows the file
    else this.#closeReasons();
  }

  draw() {
    fill(this.body, headline(this.answer), bars(this.answer, this.large ? 4 : 3));
    this.footer();
  }

  /** Others were asked since: it takes no more room than they do. */
  shrink() {
    this.large = false;
    this.element.classList.remove("large");
    if (this.answer && kindOf(this.answer) === this.element.dataset.state) this.draw();
  }

  /** It cannot be answered. */
  fail(reason) {
    this.element.dataset.state = "failed";
    this.#closeReasons();
    fill(this.body, h("p", { class: "headline" }, t.answer.unreadable), h("p", { class: "muted" }, reason));
    announce(`${t.answer.unreadable}: ${reason}`);
  }

  /** The name, the time, and why; a way to ask again, if the file has changed since. */
  footer() {
    if (!this.answer) return;
    const stale = server.status && this.answer.revision !== server.status.revision;
    const again = button(t.answer.again, { kind: "link" }, () => this.askAgain());
    const time = h("span", { class: "time" }, t.answer.took(this.answer.seconds));
    const why = this.answer.top.length > 1 && [" · ", this.whyButton()];
    const focused = this.foot.contains(document.activeElement);
    fill(this.foot, h("bdi", {}, this.file.name), " · ", stale ? [t.answer.stale, " ", again] : [time, why]);
    if (focused) this.foot.querySelector("button")?.focus();
    this.undo.hidden = this.#lesson !== server.status?.revision || !server.status.undo;
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

  // ------------------------------------------------------------ why?

  whyButton() {
    return button(t.why.ask, { kind: "link", title: t.why.title, "aria-expanded": String(this.#open) }, () => this.explain());
  }

  /** Show which parts of the photograph speak for its class; hide it, if it is shown. */
  explain() {
    if (this.#open) this.#closeReasons();
    else {
      this.#open = true;
      fill(this.why, h("p", { class: "muted" }, h("span", { class: "spinner" }), t.why.working));
      this.#giveReasons();
    }
    this.footer();
  }

  /** The reasons of the answer that is shown; older ones stay until they are there. */
  async #giveReasons() {
    const { answer } = this;
    this.why.setAttribute("aria-busy", "true");
    try {
      const found = await explanation(this.file, answer);
      if (!this.#open || this.answer !== answer) return; // another answer has its own
      fill(this.why, found);
      announce(this.why.innerText);
    } catch (error) {
      if (this.answer !== answer) return;
      this.#closeReasons();
      this.footer();
      complain(error);
    }
    this.why.removeAttribute("aria-busy");
  }

  #closeReasons() {
    this.#open = false;
    this.why.removeAttribute("aria-busy");
    fill(this.why);
  }

  // ------------------------------------------------------------ no, it is …

  /** One click for the likeliest classes; a field for all others. */
  offer() {
    if (!server.mayTeach || !this.answer) return fill(this.correction);
    const { taught, top } = this.answer;
    const other = button(top.length ? t.correct.other : t.correct.name, { kind: "chip" }, () => this.ask());
    const names = top.map((one) => String(one.label));
    const said = taught ?? (this.answer.known === false ? null : (names[0] ?? null));
    const others = names.filter((name) => name !== said).slice(0, 3); // one click away
    const yes =
      taught === null
        ? said !== null && this.chip(said, t.correct.yes, t.correct.yesTitle(said), "check")
        : [h("span", { class: "learned" }, icon("check"), t.correct.learned, " ", label(taught)), this.undo];
    const question = h("span", { class: "muted" }, said === null ? t.correct.itIs : t.correct.no);
    return fill(this.correction, yes, question, this.undo.hidden && others.map((name) => this.chip(name)), other, this.caution(taught));
  }

  /** What a correction takes away: said before it, and after it as long as it can be undone. */
  caution(taught) {
    const gone = !this.undo.hidden && this.#gone.length > 0 && t.correct.gone(this.#gone);
    const only = this.undo.hidden && server.names.get(taught) === 1 && server.names.size > 1 && t.correct.only(taught);
    return (gone || only) && h("p", { class: "warn-text" }, icon("warning"), h("bdi", {}, gone || only));
  }

  chip(name, text = null, title = t.correct.as(name), shape = null) {
    const learn = () => this.learn(name);
    const props = { type: "button", class: "button chip", title, "aria-label": title, on: { click: learn } };
    return h("button", props, shape && icon(shape), text ?? label(name));
  }

  /** A field for a class that is not offered; with what was typed before, and why it was refused. */
  ask(typed = "", problem = "") {
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
      h("p", { class: "bad-text", role: "alert", hidden: !problem }, problem),
    );
    fill(this.correction, form, this.caution(this.answer.taught));
    field.value = typed;
    field.input.focus();
    if (problem) return;
    field.open();
    field.list.scrollIntoView({ block: "nearest" });
  }

  /** Add the photograph to a class, known or new. */
  async learn(name) {
    this.#learning = true;
    const typing = this.correction.querySelector("form") !== null;
    let refusal = null;
    fill(this.correction, h("span", { class: "spinner" }), t.correct.learning);
    try {
      const { label: taught, learned, revision, gone } = await this.send(name);
      this.#lesson = learned ? revision : null;
      this.#gone = gone;
      if (gone.length) announce(t.correct.gone(gone));
      this.answer.taught = String(taught);
    } catch (error) {
      refusal = error.message;
      if (!typing) complain(error);
    }
    this.#learning = false;
    this.footer();
    if (typing && refusal) return this.ask(name, refusal);
    this.offer();
    return (this.correction.querySelector("button:not([hidden])") ?? this.element).focus();
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

  async takeBack() {
    if (!(await undoChange(this.#lesson))) return;
    this.answer.taught = null;
    this.offer();
    this.correction.querySelector("button")?.focus();
  }
}
