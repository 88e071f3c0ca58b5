// How do photographs get to the server? In small batches, which can be stopped between.

import { Lost, Refused, request } from "./api.js";
import { server } from "./server.js";

const MOST = 8; // images per request: small enough for progress

/** Lists of files, each small enough for one request. */
export function* batches(files) {
  const limits = server.status?.limits ?? {};
  const most = Math.min(MOST, limits.images ?? MOST);
  const room = 0.9 * (limits.bytes ?? Infinity); // the rest is for what is around them
  let batch = [];
  let taken = 0;
  for (const file of files) {
    if (batch.length && (batch.length >= most || taken + file.size > room)) {
      yield batch;
      batch = [];
      taken = 0;
    }
    batch.push(file);
    taken += file.size;
  }
  if (batch.length) yield batch;
}

/** What the server says of each file, in their order: an answer, or `{reason}` if unreadable. */
export async function predict(files, { kept = "tray", signal } = {}) {
  const form = new FormData();
  const names = files.map((file, place) => unique(file.name, place, files));
  files.forEach((file, place) => form.append("images", file, names[place]));
  const said = await request("POST", `predict?top=5&unknown=1&kept=${kept}`, { form, signal });
  const results = new Map();
  for (const found of [...said.predictions, ...said.unreadable]) results.set(found.input, found);
  const each = said.seconds / files.length;
  return names.map((name) => ({ seconds: each, revision: said.revision, ...results.get(name) }));
}

/** What the server says now of pictures that it remembers, by their ids; of all others, nothing. */
export async function predictAgain(ids) {
  try {
    const said = await request("POST", "predict?top=5&unknown=1", { json: { ids } });
    return new Map(said.predictions.map((one) => [one.id, { ...one, revision: said.revision }]));
  } catch (error) {
    const gone = new Set(error.status === 410 ? error.body.gone : ids);
    const left = ids.filter((id) => !gone.has(id));
    if (!left.length) throw error;
    return predictAgain(left);
  }
}

function unique(name, place, files) {
  const twice = files.some((file, other) => other !== place && file.name === name);
  return twice ? `${place + 1}-${name}` : name;
}

/** Work that is tried again when a lost server is back, or a busy one may have time. */
export async function insistently(work) {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Lost) await server.back();
      else if (error instanceof Refused && [429, 503].includes(error.status)) await pause(1000);
      else throw error;
    }
  }
}

export function pause(milliseconds) {
  return new Promise((done) => setTimeout(done, milliseconds));
}
