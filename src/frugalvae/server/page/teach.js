// The section "Teach": a name, photographs of it, and what came of them.

import { Refused } from "./api.js";
import { Camera } from "./camera.js";
import { announce, button, fill, h } from "./dom.js";
import { lessonResult } from "./lesson_result.js";
import { NameField } from "./name_field.js";
import { clearNotices, complain, notice } from "./notices.js";
import { dropZone, thumbnail } from "./pictures.js";
import { batches, insistently, pause, predict } from "./sending.js";
import { onServer, server } from "./server.js";
import { t } from "./strings.js";

const SHOWN = 48; // small pictures of what is chosen
const EACH = 180; // milliseconds between images while the button is held

export class TeachSection {
  #files = [];
  #work = null; // what stops the lesson under way
  #held = false;
  #lesson = null; // the state of the file that the result is about
  #sent = null; // what the form had, in case that is undone

  constructor() {
    this.name = new NameField(t.teach.name, { changed: () => this.ready() });
    this.hold = this.holdButton();
    this.camera = new Camera({ controls: [this.hold], closed: () => (this.zone.hidden = false) });
    this.zone = dropZone({ add: (files) => this.add(files), camera: () => this.openCamera() });
    this.chosen = h("div", { class: "chosen", hidden: true });
    this.problem = h("p", { class: "bad-text", role: "alert", hidden: true });
    this.submit = h("button", { type: "submit", class: "button primary big" }, t.teach.teach(0));
    this.progress = h("div", { class: "progress-row", hidden: true });
    this.form = this.makeForm();
    this.result = h("div", { class: "result", hidden: true });
    this.closed = h("div", { class: "card notice-card", hidden: true });
    this.element = h("div", {}, this.closed, this.result, this.form);
    onServer("status", () => this.allowed());
    onServer("changed", () => (this.result.hidden ||= this.#lesson !== server.status.revision));
    server.addEventListener("undone", ({ detail }) => this.restore(detail));
  }

  makeForm() {
    const submit = (event) => {
      event.preventDefault();
      this.teach();
    };
    return h(
      "form",
      { class: "teach-form", on: { submit } },
      this.name.element,
      h("p", { class: "muted field-hint" }, t.teach.hint),
      h("h2", { class: "field-label" }, t.teach.photographs),
      this.zone,
      this.camera.element,
      this.chosen,
      this.problem,
      h("div", { class: "row" }, this.submit, this.progress),
      h("p", { class: "muted field-hint" }, t.teach.noImage),
    );
  }

  enter() {
    if (!this.name.value && matchMedia("(pointer: fine)").matches) this.name.input.focus();
  }

  leave() {
    this.camera.stop();
  }

  /** Whether this server may be taught; if not, why. */
  allowed() {
    this.form.hidden = !server.mayTeach;
    this.closed.hidden = server.mayTeach;
    const how = h("code", {}, t.teach.command(server.status.file));
    fill(this.closed, h("p", { class: "what" }, t.teach.readOnly), h("p", { class: "muted" }, t.teach.readOnlyHow), how);
  }

  // ------------------------------------------------------------ photographs

  add(files, folder = null) {
    if (!server.mayTeach || this.#work) return;
    clearNotices();
    if (!files.length) notice(t.pictures.none);
    this.#files.push(...files);
    if (folder && !this.name.value) this.name.value = folder;
    this.showChosen();
  }

  /** Begin with a name that is known. */
  begin(name) {
    this.name.value = name;
    this.result.hidden = true;
  }

  /** More photographs of the class that was just taught. */
  goOn(name) {
    this.name.value = name;
    const next = this.camera.running ? this.hold : this.zone.querySelector("button");
    next.focus();
    next.scrollIntoView({ block: "center" });
  }

  /** What was taken back is in the form again, unless something else is by now. */
  restore(revision) {
    const sent = revision === this.#lesson && this.#sent;
    if (!sent || this.name.value || this.#files.length) return;
    this.#sent = null;
    this.name.value = sent.name;
    this.#files = sent.files;
    this.showChosen();
  }

  showChosen() {
    this.chosen.hidden = !this.#files.length;
    this.zone.classList.toggle("compact", this.#files.length > 0);
    const shown = this.#files.slice(-SHOWN).reverse();
    const rest = this.#files.length - shown.length;
    const clear = button(t.teach.removeAll, { kind: "ghost small" }, () => this.drop(() => false));
    fill(
      this.chosen,
      h("div", { class: "row between" }, h("p", { class: "muted" }, t.teach.chosen(this.#files.length)), clear),
      h("ul", { class: "strip" }, shown.map((file) => this.small(file)), rest > 0 && h("li", { class: "muted" }, t.teach.more(rest))),
    );
    this.ready();
  }

  small(file) {
    const remove = button(t.teach.remove(file.name), { kind: "over remove", shape: "close", quiet: true }, () => this.drop((one) => one !== file));
    return h("li", {}, thumbnail(file, file.name), remove);
  }

  drop(keeps) {
    this.#files = this.#files.filter(keeps);
    this.showChosen();
  }

  // ------------------------------------------------------------ the camera

  async openCamera() {
    this.zone.hidden = true;
    await this.camera.start();
    if (this.camera.running) this.hold.focus();
  }

  /** A button that takes images while a pointer, Space or Enter is down. */
  holdButton() {
    const isKey = (event) => [" ", "Enter"].includes(event.key);
    const start = (event) => {
      event.preventDefault();
      if (event.pointerId !== undefined) event.target.setPointerCapture(event.pointerId);
      if (!this.#held) this.take();
    };
    const end = () => (this.#held = false);
    return button(t.teach.hold, {
      kind: "primary big hold",
      shape: "camera",
      on: {
        pointerdown: start,
        pointerup: end,
        lostpointercapture: end,
        pointercancel: end,
        keydown: (event) => isKey(event) && start(event),
        keyup: (event) => isKey(event) && end(),
        blur: end,
        contextmenu: (event) => event.preventDefault(),
      },
    });
  }

  async take() {
    this.#held = true;
    this.hold.classList.add("held");
    do {
      const frame = await this.camera.frame();
      if (frame) this.add([frame]);
      await pause(EACH);
    } while (this.#held && this.camera.running);
    this.hold.classList.remove("held");
    announce(t.teach.chosen(this.#files.length));
  }

  // ------------------------------------------------------------ the lesson

  ready() {
    fill(this.submit, t.teach.teach(this.#files.length));
    this.problem.hidden = true;
  }

  complete() {
    const missing = !this.name.value ? t.teach.needName : !this.#files.length ? t.teach.needPictures : null;
    this.problem.hidden = !missing;
    fill(this.problem, missing ?? "");
    if (!this.name.value) this.name.input.focus();
    return !missing;
  }

  /** Send the photographs, and learn them all at once: until then, stopping changes nothing. */
  async teach() {
    clearNotices();
    if (this.#work || !this.complete()) return;
    this.#work = new AbortController();
    this.submit.disabled = true;
    try {
      this.show(await this.lesson(this.name.value, this.#work.signal));
    } catch (error) {
      if (error.name === "AbortError") notice(t.teach.stopped);
      else complain(error);
    }
    this.#work = null;
    this.submit.disabled = false;
    this.progress.hidden = true;
  }

  async lesson(name, signal) {
    for (let attempt = 0; ; attempt += 1) {
      const { ids, unreadable } = await this.upload(signal);
      this.showProgress(t.teach.learning, null);
      try {
        const learned = await insistently(() => server.change("learn", { json: { name, ids } }));
        return { ...learned, unreadable };
      } catch (error) {
        const gone = error instanceof Refused && error.status === 410;
        if (!gone || attempt) throw error; // the server was started anew meanwhile: once more
      }
    }
  }

  async upload(signal) {
    const [ids, unreadable] = [[], []];
    let done = 0;
    for (const batch of batches(this.#files)) {
      this.showProgress(t.teach.sending(done, this.#files.length), done);
      const results = await insistently(() => {
        signal.throwIfAborted();
        return predict(batch, { kept: "quiet", signal });
      });
      for (const result of results) result.reason ? unreadable.push(result) : ids.push(result.id);
      done += batch.length;
    }
    signal.throwIfAborted();
    return { ids, unreadable };
  }

  showProgress(text, done) {
    const bar = h("progress", { max: this.#files.length, "aria-label": text });
    if (done !== null) bar.value = done;
    const stop = button(t.teach.stop, { shape: "stop", kind: "small" }, () => this.#work?.abort());
    this.progress.hidden = false;
    fill(this.progress, h("span", { class: "muted" }, text), bar, done !== null && stop);
  }

  // ------------------------------------------------------------ what came of it

  /** What is learned leaves the form; where nothing was, nothing does. */
  show(said) {
    if (said.learned) {
      this.#sent = { name: this.name.value, files: this.#files };
      this.#files = [];
      this.name.value = "";
      this.showChosen();
    }
    this.result.hidden = false;
    this.#lesson = said.revision;
    fill(this.result, lessonResult(said, () => this.goOn(String(said.label))));
    this.result.firstChild.focus({ preventScroll: true });
    scrollTo(0, 0); // where it begins, however long it is
    announce(`${said.new ? t.teach.done : t.teach.doneMore} ${said.label}`);
  }
}
