// The list of models.

import { call } from "./api.js";
import { el, table } from "./dom.js";
import { follow } from "./follow.js";
import { count, moment } from "./format.js";

const COLUMNS = [
  { title: "Model", cell: (model) => el("a", { href: address(model) }, model.name) },
  { title: "Newest version", number: true, cell: (model) => String(model.version) },
  { title: "Algorithm", cell: ({ metadata }) => metadata.config.algorithm.name },
  { title: "Classes", number: true, cell: ({ metadata }) => count(metadata.classes.length) },
  { title: "Features", number: true, cell: ({ metadata }) => count(metadata.features.length) },
  { title: "Rows", number: true, cell: ({ metadata }) => count(metadata.n_rows) },
  { title: "Registered", whole: true, cell: (model) => moment(model.created_at) },
];

/** The page of one version. */
export function address({ name, version }) {
  return `/models/${encodeURIComponent(name)}/versions/${version}`;
}

/** Shows every model with its newest version. */
export function showModels(main, tell) {
  document.title = "Models – Edgewise";
  async function step() {
    const { models } = await call("/v1/models");
    const list = models.length
      ? el("div", { class: "stacked" }, table("Models by name", COLUMNS, models))
      : el("p", { class: "empty" }, "No model has been registered yet: the first job that succeeds gives one.");
    main.replaceChildren(el("h1", {}, "Models"), list);
    return false;
  }

  follow(step, tell);
}
