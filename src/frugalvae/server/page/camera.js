// What does the camera see?

import { button, fill, h } from "./dom.js";
import { t } from "./strings.js";

const SIDE = 480; // pixels of the longer side of a frame

/** A live view with buttons of its own; `frame()` is what it sees now. */
export class Camera {
  #stream = null;
  #places = ["environment", "user"];

  constructor({ controls = [], closed = () => {} } = {}) {
    this.video = h("video", { class: "view", playsinline: true, "aria-label": t.camera.view });
    this.video.muted = true;
    this.message = h("p", { class: "muted camera-message", role: "status" });
    this.closed = closed;
    this.controls = controls;
    const turn = button(t.camera.turn, { shape: "turn", kind: "over", quiet: true }, () => this.turn());
    const close = button(t.camera.close, { shape: "close", kind: "over", quiet: true }, () => this.stop());
    this.element = h(
      "div",
      { class: "camera", hidden: true },
      h("div", { class: "stage" }, this.video, this.message, h("div", { class: "corner" }, turn, close)),
      h("div", { class: "row centre" }, controls),
    );
  }

  get running() {
    return this.#stream !== null;
  }

  /** Show what the camera sees, or say why not. */
  async start() {
    this.element.hidden = false;
    this.#usable(false);
    fill(this.message, t.camera.starting);
    try {
      await this.#open();
      fill(this.message);
    } catch (error) {
      fill(this.message, reason(error));
    }
    this.#usable(this.running);
    return this.running;
  }

  async turn() {
    this.#places.reverse();
    this.#release();
    await this.start();
  }

  stop() {
    this.#release();
    if (this.element.hidden) return;
    this.element.hidden = true;
    this.closed();
  }

  /** A JPEG of what it sees; null until there is something to see. */
  async frame() {
    const { videoWidth: width, videoHeight: height } = this.video;
    if (!this.running || !width) return null;
    const scale = Math.min(1, SIDE / Math.max(width, height));
    const canvas = h("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
    canvas.getContext("2d").drawImage(this.video, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.9));
    return new File([blob], `${t.pictures.frame}.jpg`, { type: "image/jpeg" });
  }

  async #open() {
    if (!navigator.mediaDevices) throw new DOMException("", "SecurityError");
    const video = { facingMode: this.#places[0], width: { ideal: 960 } };
    this.#stream = await navigator.mediaDevices.getUserMedia({ video });
    this.#stream.getVideoTracks()[0].addEventListener("ended", () => this.stop());
    this.video.srcObject = this.#stream;
    await this.video.play();
  }

  #usable(usable) {
    for (const control of this.controls) control.disabled = !usable;
  }

  #release() {
    this.#stream?.getTracks().forEach((track) => track.stop());
    this.#stream = null;
    this.video.srcObject = null;
  }
}

function reason(error) {
  if (error.name === "NotFoundError") return t.camera.none;
  if (error.name === "NotAllowedError") return t.camera.denied;
  if (error.name === "SecurityError") return t.camera.insecure;
  return t.camera.failed(error.message);
}
