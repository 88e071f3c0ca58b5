// What is said besides the answers: short notices, the banner of a lost server, the field for a token.

import { Refused, tokensComeFrom } from "./api.js";
import { announce, breakable, button, fill, h, icon, uid } from "./dom.js";
import { server } from "./server.js";
import { t } from "./strings.js";

const LONG = 8000; // milliseconds that a notice stays

const notices = h("div", { class: "notices" });
const banner = h("div", { class: "banner", role: "alert", hidden: true });

/** A notice that goes by itself, or when the file is another; with `undo`, it offers to take the last change back. */
export function notice(text, { undo = false, kind = "" } = {}) {
  const revision = server.status?.revision;
  const close = () => element.remove();
  const element = h(
    "div",
    { class: `notice ${kind}`, data: { revision } },
    h("span", { class: "notice-text" }, breakable(text)),
    undo && button(t.undo, { kind: "small", shape: "undo" }, () => close() ?? undoChange(revision)),
    button(t.close, { shape: "close", kind: "ghost small", quiet: true }, close),
  );
  notices.append(element);
  while (notices.children.length > 3) notices.firstChild.remove();
  announce(text);
  let timer = setTimeout(close, LONG);
  const stay = () => clearTimeout(timer);
  const leave = () => {
    stay();
    timer = setTimeout(close, LONG);
  };
  for (const event of ["pointerenter", "focusin"]) element.addEventListener(event, stay);
  for (const event of ["pointerleave", "focusout"]) element.addEventListener(event, leave);
}

/** Remove what was said. */
export function clearNotices() {
  fill(notices);
}

/** Say what went wrong. */
export function complain(error) {
  if (error.name === "AbortError") return;
  if (!(error instanceof Refused)) console.warn(error);
  notice(error.message || t.server.failed, { kind: "bad" });
}

/** Take back the last change, unless the file is another than this by now; an event tells which state is gone. */
export async function undoChange(revision = server.status?.revision) {
  try {
    const { event } = await server.change("undo", { json: { revision } });
    notice(t.undone(event, server.status.undo));
    server.dispatchEvent(new CustomEvent("undone", { detail: revision }));
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}

/** The elements that show all of this. */
export function noticeElements() {
  return [banner, notices];
}

function showBanner() {
  const broken = server.status?.broken;
  const text = server.lost ? t.server.lost : broken ? t.server.broken(broken) : null;
  banner.hidden = !text;
  if (text) fill(banner, icon("warning"), text);
}

server.addEventListener("status", showBanner);
server.addEventListener("lost", showBanner);
server.addEventListener("changed", () => {
  const passing = server.ownChange ? ".notice:not(.back)" : ".notice:not(.back, .bad)"; // a refusal is for who was refused
  for (const one of notices.querySelectorAll(passing)) {
    if (one.dataset.revision !== server.status.revision) one.remove(); // it tells of an older state
  }
});
server.addEventListener("lost", () => notices.querySelector(".back")?.remove());
server.addEventListener("found", () => {
  showBanner();
  notice(t.server.found, { kind: "back" });
});
server.addEventListener("elsewhere", () => {
  notice(t.server.changed(server.status.file, server.status));
});

tokensComeFrom((wrong) => {
  const [field, title] = [uid("token"), uid("title")];
  const input = h("input", { id: field, class: "field", type: "password", autocomplete: "off", required: true });
  return new Promise((given) => {
    const submit = (event) => {
      event.preventDefault();
      if (!input.value.trim()) return;
      dialog.close();
      dialog.remove();
      given(input.value.trim());
    };
    const dialog = h(
      "dialog",
      { class: "dialog", "aria-labelledby": title, on: { cancel: (event) => event.preventDefault() } },
      h(
        "form",
        { on: { submit } },
        h("h2", { id: title }, t.token.title),
        h("p", { class: "muted" }, t.token.about),
        h("label", { for: field, class: "field-label" }, t.token.label),
        input,
        wrong && h("p", { class: "bad-text", role: "alert" }, t.token.wrong),
        h("div", { class: "row end" }, h("button", { class: "button primary", type: "submit" }, t.token.send)),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
});
