// The list of jobs.

import { call } from "./api.js";
import { el, show, table } from "./dom.js";
import { follow } from "./follow.js";
import { between, duration, moment, percent } from "./format.js";
import { errorOf, isOver, progressBar, STATES, statusBadge } from "./job_figures.js";

const PAGE = 25;

const COLUMNS = [
  {
    title: "Job",
    cell: (job) => [
      el("a", { href: `/jobs/${job.id}` }, job.name), " ", el("span", { class: "note whole" }, job.id.slice(0, 8)),
    ],
  },
  { title: "Status", cell: (job) => statusBadge(job.status) },
  { title: "Algorithm", cell: (job) => job.algorithm },
  { title: "Progress", cell: (job) => progressBar(job) },
  { title: "Error", number: true, whole: true, cell: errorCell },
  { title: "Started", whole: true, cell: (job) => moment(job.timings.started_at) },
  { title: "Duration", number: true, cell: took },
];

function took({ timings }) {
  return duration(between(timings.started_at, timings.finished_at));
}

function errorCell(job) {
  const { value, of } = errorOf(job);
  return value === null ? "–" : [percent(value), " ", el("span", { class: "note" }, of)];
}

/** Shows the page of jobs that the address asks for (?status=&page_token=). */
export function showJobs(main, tell) {
  document.title = "Jobs – Edgewise";
  const asked = new URLSearchParams(location.search);
  const [status, token] = [asked.get("status"), asked.get("page_token")];
  const list = el("div", { class: "stacked" });
  const pages = el("nav", { class: "buttons", "aria-label": "Pages of the list" });

  async function step() {
    const query = new URLSearchParams({ limit: PAGE });
    if (status) query.set("status", status);
    if (token) query.set("page_token", token);
    const answer = await call(`/v1/jobs?${query}`);
    if (!list.isConnected) show(main, el("h1", {}, "Jobs"), filter(status), list, pages);
    show(list, answer.jobs.length ? table("Jobs, the newest first", COLUMNS, answer.jobs) : nothing(status, token));
    show(pages, token ? el("a", { href: address(status, null) }, "Newest jobs") : null,
      answer.next_page_token ? el("a", { href: address(status, answer.next_page_token) }, "Older jobs") : null);
    return answer.jobs.some((job) => !isOver(job));
  }

  follow(step, tell);
}

function nothing(status, token) {
  if (status || token) return el("p", { class: "empty" }, status ? `No job is ${status} here.` : "No older jobs.");
  return el("p", { class: "empty" },
    "No job has been submitted yet. ", el("code", {}, "POST /v1/jobs"), " submits one; ",
    el("a", { href: "/docs" }, "the description of the API"), " says what it takes.");
}

function address(status, token) {
  const query = new URLSearchParams();
  if (status) query.set("status", status);
  if (token) query.set("page_token", token);
  return `/${query.size ? `?${query}` : ""}`;
}

function filter(status) {
  const link = (state, title) =>
    el("a", { href: address(state, null), "aria-current": state === (status || null) ? "true" : null }, title);
  return el("nav", { class: "choices", "aria-label": "Jobs by status" },
    link(null, "all"), STATES.map((state) => link(state, state)));
}
