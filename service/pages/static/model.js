// The report of one version of a model.

import { call } from "./api.js";
import { marginSection } from "./curves.js";
import { el, pairs, section, table } from "./dom.js";
import { follow } from "./follow.js";
import { count, moment, number, percent } from "./format.js";
import { parameters } from "./parameters.js";

const FEATURES = [
  { title: "Feature", cell: (feature) => feature.name },
  { title: "Type", cell: (feature) => feature.type },
];

/** Shows a version of a model with the figures of the job that trained it. */
export function showModel(main, tell, name, version) {
  async function step() {
    const model = await call(`/v1/models/${name}/versions/${version}`);
    const job = await jobOf(model);
    document.title = `${model.name}, version ${model.version} – Edgewise`;
    main.replaceChildren(...report(model, job));
    return false;
  }

  follow(step, tell);
}

/** The job that trained a model, null if it was deleted. */
async function jobOf(model) {
  try {
    return await call(`/v1/jobs/${model.job_id}`);
  } catch (problem) {
    if (problem.status === 404) return null;
    throw problem;
  }
}

function report(model, job) {
  const { metadata } = model;
  // A job that was resumed has trained several versions, and tells the figures of the last one.
  const answer = job?.model?.name === model.name && job.model.version === model.version ? job.answer : null;
  return [
    el("div", { class: "head" }, el("h1", {}, model.name), el("span", { class: "badge" }, `version ${model.version}`)),
    section("figures", "Figures", pairs(figures(model, job, answer)),
      answer ? null : el("p", { class: "note" }, job
        ? "The job that trained it went on and tells the errors of a later version."
        : "The job that trained it was deleted, and its errors with it.")),
    answer?.margins ? marginSection(answer.margins) : null,
    section("classes", `Classes (${count(metadata.classes.length)})`,
      el("ul", { class: "values" }, metadata.classes.map((label) => el("li", {}, text(label))))),
    section("features", `Features (${count(metadata.features.length)})`,
      el("div", { class: "wide long", role: "region", tabindex: "0", "aria-labelledby": "features" },
        table("Features in the model's order", FEATURES, metadata.features))),
    section("parameters", "Parameters", el("div", { class: "halves" },
      table("The resolved configuration", parameters.columns, parameters.rows(metadata.config)))),
  ].filter((part) => part !== null);
}

function figures(model, job, answer) {
  const { metadata } = model;
  return [
    ["Trained by", job ? el("a", { href: `/jobs/${model.job_id}` }, `job ${model.job_id.slice(0, 8)}`) : model.job_id],
    ["Registered", moment(model.created_at)],
    ["Rounds", answer ? count(answer.rounds) : null],
    ["Training error", answer ? percent(answer.train_error) : null],
    ["Validation error", answer && answer.valid_error !== null ? percent(answer.valid_error) : null],
    ["Loss", answer ? number(answer.loss) : null],
    ["Bound of the loss", answer ? number(answer.bound) : null],
    ["Rows", count(metadata.n_rows)],
    ["Label", text(metadata.label)],
    ["Decoding", metadata.decoding],
    ["Temperature", number(metadata.temperature)],
    ["Data fingerprint", el("code", {}, metadata.fingerprint)],
    ["SHA-256", el("code", {}, model.sha256)],
  ];
}

function text(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}
