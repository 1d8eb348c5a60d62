// Calls /v1, with the key that the user gave, if the server asks for one.

import { sentence } from "./format.js";

const KEY = "edgewise-key";
const PATIENCE = 30_000; // milliseconds until a call counts as not answered

/** What a call came to instead of an answer. status: HTTP's, 0 when nobody answered. */
export class Problem extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }

  /** Whether the same call may work later. */
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

let asking = null; // one dialog for all calls that wait for a key

/** The decoded answer. Raises Problem. */
export async function call(path, method = "GET") {
  const key = sessionStorage.getItem(KEY);
  const response = await send(path, method, key);
  if (response.status === 401) {
    const why = await reason(response);
    if (key !== null && key === sessionStorage.getItem(KEY)) forget();
    if (sessionStorage.getItem(KEY) === null) {
      const words = key === null ? "This server needs an API key." : sentence(why);
      asking ??= askForKey(words).finally(() => { asking = null; });
      await asking;
    }
    return call(path, method);
  }
  if (!response.ok) throw new Problem(response.status, await reason(response));
  return response.json();
}

async function send(path, method, key) {
  const headers = { Accept: "application/json" };
  if (key !== null) headers.Authorization = `Bearer ${key}`;
  try {
    return await fetch(path, { method, headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
  } catch {
    throw new Problem(0, "The server does not answer.");
  }
}

async function reason(response) {
  try {
    const problem = await response.json();
    return String(problem.detail ?? problem.title);
  } catch {
    return `The server answered ${response.status}.`;
  }
}

function askForKey(why) {
  const dialog = document.getElementById("key-dialog");
  const [form, field] = [document.getElementById("key-form"), document.getElementById("key")];
  document.getElementById("key-why").textContent = why;
  field.value = "";
  return new Promise((found, refused) => {
    const done = new AbortController();
    const listen = (target, event, act) => target.addEventListener(event, act, { signal: done.signal });
    listen(form, "submit", (event) => {
      event.preventDefault();
      const text = field.value.trim();
      if (!/^[\x21-\x7e]+$/.test(text)) return; // what cannot stand in a header is no key
      sessionStorage.setItem(KEY, text);
      field.value = "";
      tellWhetherKept();
      found();
      dialog.close();
    });
    listen(document.getElementById("key-cancel"), "click", () => dialog.close());
    listen(dialog, "close", () => {
      done.abort();
      refused(new Problem(401, `${why} Load the page again to enter one.`)); // without effect once a key is found
    });
    dialog.showModal();
  });
}

/** Drop the key. */
export function forget() {
  sessionStorage.removeItem(KEY);
  tellWhetherKept();
}

/** Offer to forget the key while there is one. */
export function tellWhetherKept() {
  document.getElementById("forget").hidden = sessionStorage.getItem(KEY) === null;
}
