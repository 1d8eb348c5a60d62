// Nested settings as a flat table.

import { el } from "./dom.js";

function* flat(value, path) {
  const nested = value !== null && typeof value === "object" && !Array.isArray(value);
  if (nested && Object.keys(value).length) {
    for (const [key, inner] of Object.entries(value)) yield* flat(inner, path ? `${path}.${key}` : key);
  } else {
    yield { path, text: typeof value === "string" ? value : JSON.stringify(value) };
  }
}

export const parameters = {
  columns: [
    { title: "Parameter", cell: (row) => el("code", {}, row.path) },
    { title: "Value", cell: (row) => row.text },
  ],
  rows: (settings) => [...flat(settings, "")],
};
