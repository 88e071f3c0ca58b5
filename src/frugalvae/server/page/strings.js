// Every text of the page, in one place. Class names and file names are put in by the callers,
// always as text.

import { bytes, count, percent, seconds } from "./format.js";

const EVENT = 3; // classes that a change names
const OURS = ["the page or HTTP", "the server"]; // where this page's lessons come from

export const t = {
  name: "FrugalVAE",
  skip: "Skip to the content",
  sections: "Sections",
  tabs: { ask: "Ask", teach: "Teach", tray: "Tray", classes: "Classes" },
  titles: {
    ask: "What is this?",
    teach: "Teach a class",
    tray: "Recent questions",
    classes: "What it knows",
  },
  theme: { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" },

  summary: (status) =>
    `${count(status.classes, "class")} · ${bytes(status.bytes)}`,
  empty: "Nothing was taught yet",
  readOnly: "Asks only",
  undo: "Undo",
  undoTitle: (text) => `Undo: ${text}`,
  takesBack: "Undo takes back",
  nothingToUndo: "Nothing to undo",
  oneStep: "One step is kept: the last change can be undone, and not those before.",
  undone: (event, next) => `${event ? `Undone: ${t.event(event)}` : "Undone"}. ${next ? `Next to undo: ${t.event(next)}` : "There is nothing more to undo."}`,

  /** A change of the file, in words; those of other programs as they are told. */
  event({ action, classes = {}, from, to, source, text, moved, gone }) {
    const names = Object.keys(classes);
    const some = Object.entries(classes).slice(0, EVENT).map(([name, number]) => (number ? `${name} (${number})` : name));
    const more = names.length > EVENT ? ` and ${names.length - EVENT} more` : "";
    const where = source && !OURS.includes(source) ? `, from ${source}` : "";
    if (moved) return t.moved({ moved, gone, classes });
    if (action === "learn" || action === "update") return `Learned ${some.join(", ")}${more}${where}`;
    if (action === "forget") return `Forgot ${names.join(", ")}`;
    if (action === "rename") return `Renamed ${from} to ${to}`;
    if (action === "merge-classes") return `Joined ${[from].flat().join(" and ")}`;
    if (action === "unlearn") return `Took some out of ${names.join(", ")}`;
    return text;
  },

  /** Photographs that became another class's, and classes that had no others. */
  moved({ moved, gone, classes }) {
    const [number, all] = [moved, classes].map((of) => Object.values(of).reduce((sum, one) => sum + one, 0));
    const [from, to] = [moved, classes].map((of) => Object.keys(of).join(" and "));
    const what = number < all ? `Learned ${count(all, "photograph")} as ${to}, ${number} of them moved from ${from}` : `Moved ${count(number, "photograph")} from ${from} to ${to}`;
    return gone?.length ? `${what}; ${t.gone(gone)}` : what;
  },
  gone: (names) => `${names.join(" and ")} had no other and ${names.length > 1 ? "are" : "is"} gone`,

  server: {
    lost: "The server does not answer. Trying again; what you typed is kept.",
    found: "The server is back.",
    changed: (file, status) => `${file} was changed elsewhere: ${t.summary(status)}`,
    broken: (why) => `The file cannot be read any more, so answers come from its last state: ${why}`,
    failed: "This did not work",
    refused: (code) => `The server refused this (${code})`,
  },

  token: {
    title: "A token is needed",
    about: "This server asks for the token that it was started with. It is kept until you close this tab.",
    label: "Token",
    send: "Continue",
    wrong: "This is not the token.",
  },

  pictures: {
    drop: "Drop photographs here",
    show: "Show it a photograph",
    paste: "or paste them from the clipboard",
    choose: "Choose photographs",
    camera: "Use the camera",
    none: "These are no images. Photographs are JPEG, PNG, WebP, HEIC and the like; convert a camera's raw files to JPEG.",
    others: (names) => `Left out, no images: ${names.slice(0, 3).join(", ")}${names.length > 3 ? ` and ${names.length - 3} more` : ""}`,
    stop: "Stop",
    of: (name) => `Photograph ${name}`,
    frame: "camera image",
  },

  camera: {
    view: "Camera",
    close: "Close the camera",
    turn: "Another camera",
    keep: "Keep this image",
    none: "No camera was found here.",
    denied: "The browser does not allow the camera. Allow it in the address bar, then try again.",
    insecure: "Browsers allow the camera only on this machine's own address or over HTTPS.",
    failed: (why) => `The camera cannot be used: ${why}`,
    agree: (same, all) => `${same} of the last ${all} frames agree`,
    starting: "Starting the camera …",
    rate: (each) => seconds(each),
  },

  ask: {
    nothing: "Nothing was taught yet. Begin with two classes and a few photographs of each.",
    begin: "Teach the first class",
    done: (all) => count(all, "answer"),
    progress: (done, all) => `${done} of ${count(all, "photograph")} answered`,
    clear: "Clear",
    answers: "Answers",
    stopped: (done, all) => `Stopped: ${done} of ${all} were answered.`,
  },

  answer: {
    none: "None of these",
    nearest: "Nearest among the known classes:",
    far: (familiarity) => `${familiarity < 0.01 ? "Nearly all" : `${percent(1 - familiarity)} of the`} taught photographs are more like their class than this is like any.`,
    between: (one, other) => `Not sure between ${one} and ${other}.`,
    perhaps: "Perhaps",
    working: "Looking …",
    waiting: "Waits for the server",
    unreadable: "Cannot be read",
    empty: "No class is known yet",
    unlike: "Unlike",
    alone: "The only class so far. Teach a second one, and it compares.",
    took: (time) => seconds(time),
    stale: "Asked before the last change.",
    again: "Ask again",
    chances: "How likely each class is",
    said: (label, chance) => `${label}, ${percent(chance)}`,
    saidNone: (label, far) => `None of these; nearest is ${label}. ${far}`,
  },

  correct: {
    yes: "Yes",
    yesTitle: (label) => `Yes, it is ${label}: learn this photograph too`,
    no: "No, it is",
    itIs: "It is",
    other: "another …",
    name: "type a name …",
    as: (label) => `It is ${label}: learn this photograph`,
    label: "What is it?",
    learn: "Learn",
    cancel: "Cancel",
    learning: "Learning …",
    learned: "Learned as",
    only: (label) => `This is the only photograph of ${label}: if it is learned as something else, ${label} goes away.`,
    gone: (names) => `${t.gone(names)}. Undo brings ${names.length > 1 ? "them" : "it"} back.`,
  },

  why: {
    ask: "Why?",
    title: "Why? Show which parts speak for it",
    working: "Hiding one part after the other …",
    about: "Parts of the photograph were hidden one after the other. A part has a colour if the answer changes without it.",
    colours: ["Orange speaks for", "Blue speaks instead for"], // as why.js has them
    where: (part) => `Mostly at the ${part}`,
    nowhere: "Hardly any part does",
    taught: (number, day) => `Taught with ${count(number, "photograph")}${day ? `, the last on ${day}` : ""}`,
  },

  names: {
    known: (samples) => count(samples, "sample"),
    fresh: "new class",
    placeholder: "Name of a class",
    offers: "Known classes",
    near: (other) => `Is it the same as “${other}”, which is known?`,
    use: (other) => `Use “${other}”`,
  },

  teach: {
    name: "What do they show?",
    hint: "A new name makes a new class; a known one gets more samples.",
    photographs: "Photographs",
    hold: "Hold to take images",
    chosen: (number) => count(number, "photograph"),
    remove: (name) => `Remove ${name}`,
    removeAll: "Remove all",
    more: (number) => `and ${number} more`,
    teach: (number) => (number ? `Teach ${count(number, "photograph")}` : "Teach"),
    needName: "Type what they show.",
    needPictures: "Add at least one photograph.",
    sending: (done, all) => `${done} of ${all} read`,
    learning: "Learning …",
    stop: "Stop",
    stopped: "Stopped. Nothing was changed.",
    done: "It knows",
    doneMore: "It knows more of",
    learned: (number) => `${count(number, "photograph")} learned`,
    already: (number) => `${number} taught before`,
    moved: (number, other, gone) => `${number} taken out of ${other}${gone ? ", which had no other and is gone" : ""}`,
    nothing: "Nothing new: all of these were taught before.",
    unreadable: (number) => `${number} cannot be read`,
    file: "The file",
    classes: "Classes",
    samples: "Samples of it",
    time: "Time",
    confuses: "May be confused with",
    confusesNothing: "It is not likely to be confused with anything.",
    confusesPerhaps: "Too few photographs were tested to say what it is confused with.",
    confusesUnknown: "Teach a second class, and it says what it confuses.",
    tryIt: "Ask it",
    noImage: "No photograph is kept: only what is needed to recognise the class.",
    readOnly: "This server answers, and cannot be taught.",
    readOnlyHow: "Whoever started it can let it be taught like this:",
    command: (file) => `frugalvae serve ${file} --teach`,
  },

  tray: {
    kept: (minutes) => `Small pictures stay in the server's memory for ${minutes}, then they are gone.`,
    onDisk: "Whoever started this server asked to keep them in a folder, too.",
    notOnDisk: "Nothing is written to disk.",
    minutes: (number) => count(number, "minute"),
    seconds: (number) => count(number, "second"),
    filter: "Show",
    all: "All",
    unsure: "Unsure",
    unknown: "Unknown",
    taught: "Learned",
    empty: "Nothing was asked lately.",
    emptyFilter: "None of these.",
    selectAll: "Select all",
    selectNone: "Select none",
    selected: (number) => `${number} selected`,
    assign: "Learn",
    assignLabel: "They are",
    drop: "Remove",
    clear: "Empty the tray",
    cleared: "The tray is empty.",
    assigned: (number, label, gone) => `${count(number, "photograph")} learned as ${label}${gone.length ? `; ${t.gone(gone)}` : ""}`,
    gone: "Some of these pictures are gone by now. Nothing was changed.",
    telling: "Teaches most first",
    tellingTitle: "Teaches most first: shows the photographs that would teach it most before the others",
    between: (one, other) => `${one} or ${other}?`,
    perhapsNew: "Perhaps a new class:",
    alike: (number) => `${number} that look alike`,
    asSaid: (label) => `answered ${label}`,
    learnedAs: (label) => `learned as ${label}`,
    select: (what) => `Select: ${what}`,
  },

  classes: {
    expected: "Expected accuracy",
    expectedNone: "not known yet",
    expectedFew: "Too few photographs were tested to say what accuracy to expect: teach more.",
    expectedHint: "Expected accuracy is of new photographs like the taught ones. Those of another camera or season are recognised less often.",
    number: "Classes",
    samples: "Samples",
    file: "File",
    map: "Map",
    mapAbout: "Classes that look alike to it are near each other. A line joins what it confuses.",
    mapLabel: (number) => `Map of ${count(number, "class")}, similar ones near each other`,
    confused: "Most confused",
    confusedNone: "Nothing is likely to be confused.",
    takenFor: "taken for",
    list: "All classes",
    find: "Find a class",
    nearest: "near",
    accuracy: (share, interval) => `expected accuracy${interval ? "" : ":"} ${t.classes.about(share, interval)}`,
    /** As the command line says it, by the same rule: without bounds there are too few photographs. */
    about: (share, interval) => (interval ? `about ${percent(share)} (${interval.map((bound) => Math.round(100 * bound)).join(" to ")})` : "too few photographs were tested to say"),
    confusedOthers: "No two classes that were tested are likely to be confused.",
    testedNone: "Too few photographs of each class were tested to say: teach more.",
    testedUnsure: "Too few photographs of each class were tested to be sure of these.",
    testedFew: "Too few photographs were tested of",
    andMore: (number) => ` and ${number} more`,
    samplesOf: (number) => count(number, "sample"),
    rename: "Rename",
    renameOf: (label) => `Rename ${label}`,
    newName: "New name",
    save: "Save",
    cancel: "Cancel",
    forget: "Forget",
    forgetOf: (label) => `Forget ${label}`,
    sure: "Forget",
    keep: "Keep it",
    join: (label, other) => `Make ${label} part of ${other}`,
    joined: (label, other) => `${label} is part of ${other} now`,
    more: "Add photographs",
    moreOf: (label) => `Add photographs of ${label}`,
    renamed: (from, to) => `${from} is ${to} now`,
    forgotten: (label) => `${label} is forgotten`,
    history: "History",
    historyNone: "It has no history.",
    noMap: "A map needs at least three classes.",
    nothing: "Nothing was taught yet.",
    showAll: (number) => `Show all ${number}`,
  },

  close: "Close",
};
