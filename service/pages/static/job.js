// The page of one job.

import { call } from "./api.js";
import { CurvePart, marginSection } from "./curves.js";
import { el, pairs, section, show, table } from "./dom.js";
import { follow } from "./follow.js";
import { between, bytes, count, duration, moment, number, percent } from "./format.js";
import { answerOf, isOver, progressBar, statusBadge } from "./job_figures.js";
import { address } from "./models.js";
import { parameters } from "./parameters.js";
import { Rounds } from "./rounds.js";
import { StagePart } from "./stages.js";

const PHASES = { read: "reading", compile: "compiling kernels" };
const HISTORY = [
  { title: "When", whole: true, cell: (step) => moment(step.at) },
  { title: "Status", cell: (step) => statusBadge(step.state) },
  { title: "Run", number: true, cell: (step) => String(step.run) },
  { title: "Reason", cell: (step) => step.reason ?? "–" },
];

/** Shows the job of this id, and follows it as long as it is not over. */
export function showJob(main, tell, id) {
  const rounds = new Rounds(id);
  const page = new JobPage(() => cancel(id, tell, () => again()));

  async function step() {
    const job = await call(`/v1/jobs/${id}`);
    const told = await rounds.read(job);
    if (!page.head.isConnected) main.replaceChildren(...page.parts);
    page.draw(job, told, rounds.every);
    return !isOver(job);
  }

  const again = follow(step, tell);
}

async function cancel(id, tell, again) {
  if (!window.confirm("Cancel this job? Its rounds so far give no model.")) return;
  try {
    await call(`/v1/jobs/${id}/cancel`, "POST");
    again();
  } catch (problem) {
    tell(problem);
  }
}

class JobPage {
  head = el("div", { class: "head" });
  #cancel;
  #state = el("div", { role: "status" });
  #progress = el("p");
  #figures = el("div");
  #margins = el("div");
  #request = el("div", { class: "halves" });
  #history = el("div", { class: "stacked" });
  #curves = new CurvePart();
  #stages = new StagePart();
  parts;

  constructor(cancelled) {
    this.#cancel = el("button", { type: "button", class: "danger", click: cancelled }, "Cancel the job");
    this.parts = [
      this.head, this.#state, this.#progress, el("p", {}, this.#cancel), section("figures", "Figures", this.#figures),
      this.#curves.element, this.#margins, this.#stages.element,
      section("parameters", "Parameters", this.#request), section("history", "History", this.#history),
    ];
  }

  draw(job, rounds, every) {
    document.title = `${job.name}: ${job.status} – Edgewise`;
    this.#cancel.hidden = isOver(job) || job.status === "cancelling";
    show(this.head, el("h1", {}, job.name), statusBadge(job.status), el("span", { class: "note" }, job.id));
    show(this.#state, stateOf(job));
    const left = job.eta === null ? null : el("span", { class: "note" }, ` about ${duration(job.eta)} left`);
    show(this.#progress, progressBar(job), left);
    show(this.#figures, pairs(figuresOf(job)));
    this.#curves.draw(rounds, isOver(job));
    this.#drawMargins(answerOf(job)?.margins);
    this.#stages.draw(job, rounds, every);
    show(this.#request, table("The request with its defaults", parameters.columns, parameters.rows(job.request)));
    show(this.#history, table("Changes of status", HISTORY, job.transitions));
  }

  #drawMargins(margins) {
    if (!margins || this.#margins.childElementCount) return;
    this.#margins.append(marginSection(margins));
  }
}

function stateOf(job) {
  return [
    el("p", {}, job.message, job.phase ? ` Now: ${PHASES[job.phase] ?? job.phase}.` : ""),
    job.reason ? el("p", { class: job.status === "failed" ? "reason failed" : "reason" }, job.reason) : null,
    ...(answerOf(job)?.warnings ?? []).map((warning) => el("p", { class: "reason" }, warning)),
  ];
}

function figuresOf(job) {
  const answer = answerOf(job) ?? {};
  const { submitted_at, started_at, finished_at } = job.timings;
  const known = (value, words) => (value === undefined ? null : words(value));
  return [
    ["Model", modelLink(job.model)],
    ["Algorithm", job.algorithm],
    ["Training error", errorText(answer.train_error)],
    ["Validation error", errorText(answer.valid_error)],
    ["Loss", known(answer.loss, number)],
    ["Bound of the loss", known(answer.bound, number)],
    ["Rounds in the model", known(answer.rounds, (kept) => `${count(kept)} of ${count(answer.rounds_run)} trained`)],
    ["Stop reason", answer.stop_reason?.replaceAll("_", " ")],
    ["Rows, classes", known(answer.rows, (rows) => `${count(rows)}, ${count(answer.classes)}`)],
    ["Workers", workersText(job.resources)],
    ["Threads", job.resources.threads === null ? "as many as the worker has" : String(job.resources.threads)],
    ["Rows of each member", answer.rows_per_member?.map(count).join(", ")],
    ["Memory, estimated", memoryText(job, answer)],
    ["Memory, measured", known(answer.peak_memory_bytes, (most) => `${bytes(most)} at most on a member`)],
    ["Submitted", moment(submitted_at)],
    ["Started", started_at && moment(started_at)],
    ["Finished", finished_at && moment(finished_at)],
    ["Duration", started_at && duration(between(started_at, finished_at))],
    ["Attempts", job.run > 1 ? String(job.run) : null],
  ];
}

function errorText(value) {
  return value === undefined || value === null ? null : percent(value);
}

function modelLink(model) {
  if (model === null) return null;
  return el("a", { href: address(model) }, `${model.name}, version ${model.version}`);
}

function workersText({ workers, requested_workers: asked }) {
  if (workers === null) return `asked for: ${asked}`;
  return workers === 0 ? "none: the server's own process" : count(workers);
}

function memoryText(job, answer) {
  if (answer.estimated_memory_bytes !== undefined) return `${bytes(answer.estimated_memory_bytes)} on each member`;
  return job.memory && `${bytes(job.memory.needed_bytes)} on each member`;
}
