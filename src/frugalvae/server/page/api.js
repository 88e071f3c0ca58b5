// How is the server asked? One request, with the token that the tab was given.

import { sentence } from "./format.js";
import { t } from "./strings.js";

const KEY = "frugalvae-token";

/** The server answered that it will not. */
export class Refused extends Error {
  constructor(status, body) {
    super(sentence(body?.error ?? t.server.refused(status)));
    this.status = status;
    this.body = body ?? {};
  }
}

/** The server did not answer at all. */
export class Lost extends Error {}

let asking = null; // for a token, if it is being asked for
let askForToken = () => Promise.reject(new Refused(401));

/** Who asks people for the token: a function that gets whether one was wrong, and gives a token. */
export function tokensComeFrom(source) {
  askForToken = source;
}

/** The JSON, or with `as: "blob"` the bytes, that the server answers. */
export async function request(method, path, { json, form, signal, as = "json" } = {}) {
  for (;;) {
    const token = sessionStorage.getItem(KEY);
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    if (json) headers["Content-Type"] = "application/json";
    const response = await answered(path, {
      method,
      headers,
      signal,
      body: json ? JSON.stringify(json) : form,
      cache: "no-store",
    });
    if (response.status === 401) {
      await newToken(token);
      continue;
    }
    if (!response.ok) throw new Refused(response.status, await response.json().catch(() => null));
    return as === "blob" ? response.blob() : response.json();
  }
}

async function answered(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Lost(t.server.lost);
  }
}

async function newToken(refused) {
  if (sessionStorage.getItem(KEY) !== refused) return; // another request has a new one
  asking ??= askForToken(refused !== null).finally(() => (asking = null));
  sessionStorage.setItem(KEY, await asking);
}
