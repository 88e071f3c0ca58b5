// What does the server know and allow, and is it there? Watched by polling its status.

import { Lost, Refused, request } from "./api.js";

const EVERY = 2000; // milliseconds
const PATIENCE = 10000; // until a silent server is taken for lost

class Server extends EventTarget {
  status = null;
  names = new Map(); // samples by class
  lost = false;
  #own = 0; // changes of this page that are under way
  #expected = null; // the state that the last of them made

  /** Ask again and again; never ends. */
  async watch() {
    for (;;) {
      if (!this.#own && !document.hidden) await this.refresh();
      await new Promise((done) => setTimeout(done, this.lost ? EVERY / 2 : EVERY));
    }
  }

  /** Ask for the status now; events tell what is different. */
  async refresh() {
    try {
      const status = await request("GET", "status", { signal: AbortSignal.timeout(PATIENCE) });
      await this.#take(status);
      this.#isLost(false);
    } catch (error) {
      if (error instanceof Refused) return;
      this.#isLost(true);
    }
  }

  /** Change the file: the answer of the server, after the page has taken it up. */
  async change(path, options) {
    this.#own += 1;
    try {
      const answer = await request("POST", path, options);
      this.#expected = answer.revision;
      await this.refresh();
      return answer;
    } catch (error) {
      if (error instanceof Lost) this.#isLost(true);
      throw error;
    } finally {
      this.#own -= 1;
    }
  }

  /** When the server answers again. */
  async back() {
    this.#isLost(true);
    await new Promise((done) => this.addEventListener("found", done, { once: true }));
  }

  /** Whether the last change was made here. */
  get ownChange() {
    return this.status?.revision === this.#expected;
  }

  get mayTeach() {
    return Boolean(this.status?.teach);
  }

  async #take(status) {
    const before = this.status;
    const changed = before?.revision !== status.revision;
    if (changed) {
      const { classes } = await request("GET", "classes?brief=1");
      this.names = new Map(classes.map(({ label, samples }) => [String(label), samples]));
    }
    this.status = status;
    this.#tell("status");
    if (!changed) return;
    this.#tell("changed");
    if (before && !this.ownChange) this.#tell("elsewhere");
  }

  #isLost(lost) {
    if (lost === this.lost) return;
    this.lost = lost;
    this.#tell(lost ? "lost" : "found");
  }

  #tell(what) {
    this.dispatchEvent(new Event(what));
  }
}

export const server = new Server();

/** Call a function now, if the status is known, and at each of these events. */
export function onServer(events, listener) {
  for (const event of events.split(" ")) server.addEventListener(event, listener);
  if (server.status) listener();
}
