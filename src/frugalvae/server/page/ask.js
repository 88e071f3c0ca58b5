// The section "Ask": photographs or the camera in, answers out.

import { Lost } from "./api.js";
import { AnswerCard } from "./answer_card.js";
import { Camera } from "./camera.js";
import { bars, headline, inWords } from "./chances.js";
import { announce, button, fill, h } from "./dom.js";
import { clearNotices, complain, notice } from "./notices.js";
import { dropZone } from "./pictures.js";
import { batches, insistently, pause, predict, predictAgain } from "./sending.js";
import { onServer, server } from "./server.js";
import { t } from "./strings.js";

const FRAMES = 10; // that vote
const AGAIN = 64; // pictures that are asked about again at a time
const PAUSE = 200; // milliseconds between frames, at least

export class AskSection {
  #queue = []; // cards without an answer
  #cards = [];
  #running = null; // what stops the questions under way

  constructor() {
    const keep = button(t.camera.keep, { kind: "primary", shape: "camera" }, () => this.keepFrame());
    this.camera = new Camera({ controls: [keep], closed: () => this.cameraClosed() });
    this.live = h("div", { class: "live", hidden: true });
    this.zone = dropZone({ add: (files) => this.add(files), camera: () => this.openCamera() });
    this.first = h("p", { class: "hint", hidden: true });
    this.progress = h("div", { class: "progress-row", hidden: true });
    this.answers = h("div", { class: "answers", role: "region", "aria-label": t.ask.answers });
    this.element = h("div", { class: "ask" }, this.first, this.zone, this.camera.element, this.live, this.progress, this.answers);
    this.camera.element.append(this.live);
    onServer("changed", () => this.refreshed());
  }

  leave() {
    this.camera.stop();
  }

  refreshed() {
    this.renew();
    this.first.hidden = server.names.size > 0;
    const begin = h("a", { href: "#teach", class: "link" }, t.ask.begin);
    fill(this.first, t.ask.nothing, " ", server.mayTeach ? begin : "");
  }

  /** The file has changed: answers become those of the file as it is. */
  async renew() {
    const cards = this.#cards.filter((card) => card.answer?.id);
    for (let start = 0; start < cards.length; start += AGAIN) {
      const some = cards.slice(start, start + AGAIN);
      const answers = await predictAgain(some.map((card) => card.answer.id)).catch(() => new Map());
      for (const card of some) {
        const answer = answers.get(card.answer.id);
        if (answer) card.renew(answer);
      }
    }
    for (const card of this.#cards) card.footer(); // of pictures that the server has forgotten
  }

  // ------------------------------------------------------------ photographs

  /** Ask about files; answers come as they are ready, the first in large. */
  add(files) {
    clearNotices();
    if (!files.length) return notice(t.pictures.none);
    this.#cards.forEach((card) => card.shrink());
    const cards = files.map((file) => new AnswerCard(file, { large: files.length === 1 }));
    this.answers.prepend(...cards.map((card) => card.element));
    this.zone.classList.add("compact");
    this.#cards.unshift(...cards);
    this.#queue.push(...cards);
    return this.run();
  }

  async run() {
    if (this.#running) return;
    this.#running = new AbortController();
    try {
      while (this.#queue.length) await this.askSome(this.#running.signal);
    } catch (error) {
      this.stopped(error);
    }
    this.#running = null;
    this.showProgress();
  }

  async askSome(signal) {
    this.showProgress();
    const files = this.#queue.map((card) => card.file);
    const cards = this.#queue.slice(0, batches(files).next().value.length);
    try {
      const answers = await this.patiently(cards, signal);
      cards.forEach((card, place) => card.show(answers[place]));
    } catch (error) {
      if (error.name === "AbortError") throw error;
      cards.forEach((card) => card.fail(error.message));
    }
    this.#queue = this.#queue.filter((card) => !cards.includes(card));
  }

  async patiently(cards, signal) {
    return insistently(async () => {
      signal.throwIfAborted();
      cards.forEach((card) => card.wait(t.answer.working));
      try {
        return await predict(cards.map((card) => card.file), { signal });
      } catch (error) {
        if (error instanceof Lost) cards.forEach((card) => card.wait(t.answer.waiting));
        throw error;
      }
    });
  }

  stopped(error) {
    if (error.name !== "AbortError") complain(error);
    const left = this.#queue.length;
    this.#queue.forEach((card) => card.element.remove());
    this.#cards = this.#cards.filter((card) => !this.#queue.includes(card));
    this.#queue = [];
    notice(t.ask.stopped(this.#cards.length, this.#cards.length + left));
  }

  showProgress() {
    const [all, left] = [this.#cards.length, this.#queue.length];
    this.progress.hidden = all === 0;
    const bar = h("progress", { max: all, value: all - left, "aria-label": t.ask.progress(all - left, all) });
    const stop = button(t.pictures.stop, { shape: "stop", kind: "small" }, () => this.#running?.abort());
    const clear = button(t.ask.clear, { kind: "ghost small" }, () => this.clear());
    const text = h("span", { class: "muted" }, left ? t.ask.progress(all - left, all) : t.ask.done(all));
    fill(this.progress, text, left > 0 && all > 1 && bar, left > 0 ? stop : clear);
  }

  clear() {
    this.#cards = [];
    fill(this.answers);
    this.zone.classList.remove("compact");
    this.showProgress();
  }

  // ------------------------------------------------------------ the camera

  async openCamera() {
    this.zone.hidden = true;
    if (await this.camera.start()) this.watch();
  }

  cameraClosed() {
    this.zone.hidden = false;
    this.live.hidden = true;
  }

  async keepFrame() {
    const frame = await this.camera.frame();
    if (frame) this.add([frame]);
  }

  /** Ask about one frame after the other while the camera runs. */
  async watch() {
    let last = [];
    while (this.camera.running) {
      const started = performance.now();
      const frame = await this.camera.frame();
      if (frame) last = await this.askFrame(frame, last);
      await pause(Math.max(30, PAUSE - (performance.now() - started)));
    }
  }

  async askFrame(frame, last) {
    try {
      const [answer] = await insistently(() => predict([frame], { kept: "no" }));
      if (!this.camera.running || answer.reason) return last;
      const now = [...last, answer].slice(-FRAMES);
      this.showLive(answer, now);
      return now;
    } catch (error) {
      complain(error);
      this.camera.stop();
      return last;
    }
  }

  showLive(answer, last) {
    const what = (one) => (one.known === false ? null : (one.top[0]?.label ?? null));
    const same = last.filter((one) => what(one) === what(answer)).length;
    const share = h("span", { class: "agree" }, h("span", { class: "dots" }, last.map((one) => h("i", { class: what(one) === what(answer) ? "on" : "" }))), t.camera.agree(same, last.length));
    const words = inWords({ ...answer, top: answer.top.slice(0, 1) });
    if (same === last.length && last.length === FRAMES && this.said !== what(answer)) {
      this.said = what(answer);
      announce(words);
    }
    this.live.hidden = false;
    fill(this.live, headline(answer), bars(answer, 4), h("p", { class: "muted foot" }, share, " · ", t.camera.rate(answer.seconds)));
  }
}
