// The page: its frame, its four sections, and what goes on in all of them.

import { AskSection } from "./ask.js";
import { ClassesSection } from "./classes.js";
import { breakable, button, fill, h, icon } from "./dom.js";
import { clearNotices, noticeElements, undoChange } from "./notices.js";
import { dropped, pasted } from "./pictures.js";
import { onServer, server } from "./server.js";
import { t } from "./strings.js";
import { TeachSection } from "./teach.js";
import { TraySection } from "./tray.js";

const teach = new TeachSection();
const sections = {
  ask: new AskSection(),
  teach,
  tray: new TraySection(),
  classes: new ClassesSection((name) => {
    teach.begin(name);
    location.hash = "teach";
  }),
};
let current = null;

// ------------------------------------------------------------ the frame

const file = h("p", { class: "file" });
const summary = h("p", { class: "muted summary" });
const last = h("div", { class: "last" });
const theme = h("span", {});
const links = Object.keys(sections).map((name) =>
  h("a", { href: `#${name}`, data: { section: name } }, icon(name), h("span", {}, t.tabs[name])),
);
const panels = Object.entries(sections).map(([name, section]) =>
  h("section", { id: name, class: "panel", "aria-labelledby": `title-${name}`, hidden: true }, h("h1", { id: `title-${name}`, tabindex: -1 }, t.titles[name]), section.element),
);
const content = h("main", { id: "content" }, panels);

document.body.append(
  h("a", { class: "skip", href: "#content", on: { click: skip } }, t.skip),
  h(
    "header",
    { class: "side" },
    h("div", { class: "brand" }, h("img", { src: "page/icon.svg", alt: t.name, width: 32, height: 32 }), h("div", { class: "brand-text" }, file, summary)),
    h("nav", { "aria-label": t.sections }, links),
    h("div", { class: "side-foot" }, last, theme),
  ),
  content,
  h("aside", { class: "over-all", "aria-label": t.name }, noticeElements()),
);

function skip(event) {
  event.preventDefault();
  document.getElementById(`title-${current}`).focus();
}

/** Show the section that the address names. */
function turn(event) {
  const name = location.hash.slice(1) in sections ? location.hash.slice(1) : "ask";
  if (name === current) return;
  sections[current]?.leave?.();
  clearNotices();
  current = name;
  panels.forEach((panel) => (panel.hidden = panel.id !== name));
  links.forEach((link) => {
    if (link.dataset.section === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  document.title = [t.tabs[name], server.status?.file, t.name].filter(Boolean).join(" · ");
  if (event) {
    scrollTo(0, 0);
    document.getElementById(`title-${name}`).focus({ preventScroll: true });
  }
  sections[name].enter?.();
}

// ------------------------------------------------------------ the file

onServer("status", () => {
  const { status } = server;
  fill(file, h("bdi", { title: status.file }, status.file));
  fill(summary, status.classes ? t.summary(status) : t.empty);
  document.title = [t.tabs[current], status.file, t.name].filter(Boolean).join(" · ");
  fill(last, lastChange(status));
});

function lastChange({ teach: allowed, undo }) {
  if (!allowed) return h("p", { class: "badge", title: t.teach.readOnly }, t.readOnly);
  if (!undo) return h("p", { class: "muted last-none", title: t.oneStep }, t.nothingToUndo);
  const text = t.event(undo);
  const back = button(t.undo, { shape: "undo", kind: "small", title: t.undoTitle(text) }, () => undoChange());
  return [h("div", { class: "last-text" }, h("p", { class: "field-label" }, t.takesBack), h("p", { class: "muted" }, h("bdi", {}, breakable(text)))), back];
}

// ------------------------------------------------------------ photographs from anywhere

let entered = 0; // elements under what is dragged

function drag(step) {
  return (event) => {
    if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
    event.preventDefault();
    entered = Math.max(0, entered + step);
    document.body.classList.toggle("dragging", entered > 0);
  };
}

addEventListener("dragenter", drag(1));
addEventListener("dragleave", drag(-1));
addEventListener("dragover", drag(0));
addEventListener("drop", async (event) => {
  event.preventDefault();
  entered = 0;
  document.body.classList.remove("dragging");
  const { files, folder } = await dropped(event);
  sections[current].add?.(files, folder);
});
addEventListener("paste", (event) => {
  const files = pasted(event);
  if (!files.length) return;
  event.preventDefault();
  sections[current].add?.(files);
});

// ------------------------------------------------------------ light and dark

const THEMES = ["auto", "light", "dark"];

function showTheme() {
  const now = localStorage.getItem("frugalvae-theme") ?? "auto";
  document.documentElement.dataset.theme = now;
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
  const change = () => {
    localStorage.setItem("frugalvae-theme", next);
    showTheme();
    theme.firstChild.focus();
  };
  fill(theme, button(t.theme[now], { shape: now, kind: "ghost small", quiet: true }, change));
}

showTheme();
addEventListener("hashchange", turn);
turn();
server.watch();
