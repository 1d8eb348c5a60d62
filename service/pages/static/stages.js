// Where the time of a job went, by stage.

import { ColumnChart } from "./chart.js";
import { el, section, show, table } from "./dom.js";
import { between, duration, percent } from "./format.js";
import { answerOf, isOver } from "./job_figures.js";

/** In the order of a training; docs/http.md says what each is. */
export const NAMES = {
  waiting: "waiting for workers",
  read: "reading",
  bin: "binning",
  compile: "compilation",
  growing: "growing, the rest",
  histograms: "histograms",
  search: "search for cuts",
  partition: "partition of rows",
  step: "edge and alpha",
  conditions: "condition figures",
  update: "scores and errors",
  weights: "weights, gain matrix",
  packing: "packing of sums",
  exchange: "sending and waiting",
  report: "reporting rounds",
  checkpoint: "checkpoints",
  other: "before and after rounds",
  validate: "validation",
};
const BEFORE = "before";
const OUTSIDE = "outside_kernels"; // no stage, but a part of each
const COLUMNS = 60;
const COLOURS = 7;

const TABLE = [
  { title: "Stage", cell: (row) => row.name },
  { title: "Share", cell: (row) => bar(row.share) },
  { title: "Time", number: true, cell: (row) => duration(row.seconds) },
  { title: "A round", number: true, cell: (row) => duration(row.per_round) },
  { title: "Outside kernels", number: true, cell: (row) => duration(row.outside_kernels) },
];

function bar(share) {
  const filling = el("span", { class: "filling" });
  filling.style.width = `${100 * share}%`; // by script: the policy allows no style in markup
  const trough = el("span", { class: "trough", "aria-hidden": "true" }, filling);
  return el("span", { class: "bar" }, trough, share < 1e-3 ? "< 0.1 %" : percent(share));
}

/** The section of a job's page. */
export class StagePart {
  #words = el("div");
  #table = el("div", { class: "wide", role: "region", tabindex: "0", "aria-labelledby": "time" });
  #chart = new ColumnChart("Time of a round, by stage");
  element = section("time", "Where the time went", this.#words, this.#table, this.#chart.element);

  /** rounds: every `every`-th that was told. */
  draw(job, rounds, every) {
    const measured = rounds.filter((round) => round.stages);
    const rows = answerOf(job)?.profile ? rowsOfAnswer(job.answer.profile) : rowsSoFar(job, measured, every);
    const shown = rows.filter((row) => row.seconds > 0);
    show(this.#words, el("p", {}, words(job, measured, every)));
    this.#table.hidden = shown.length === 0;
    show(this.#table, table("Time by stage", TABLE, shown));
    this.#columns(measured);
  }

  #columns(measured) {
    const totals = totalsOf(measured);
    const first = Object.keys(totals).sort((one, other) => totals[other] - totals[one]).slice(0, COLOURS);
    const names = Object.keys(NAMES).filter((stage) => first.includes(stage));
    let before = measured.length ? measured[0].round - 1 : 0;
    const columns = grouped(measured).map((rounds) => {
      const mean = totalsOf(rounds);
      const all = Object.values(mean).reduce((total, value) => total + value, 0);
      const parts = names.map((stage) => (mean[stage] ?? 0) / rounds.length);
      const rest = all / rounds.length - parts.reduce((total, value) => total + value, 0);
      const from = before + 1;
      before = rounds.at(-1).round;
      return { from, to: before, parts: [...parts, Math.max(rest, 0)] };
    });
    const key = [...names.map((stage, place) => [NAMES[stage], `stage s${place}`]), ["the other stages", "stage rest"]];
    this.#chart.draw(columns, key, duration);
  }
}

function words(job, measured, every) {
  if (answerOf(job)?.profile) {
    const { seconds, outside_kernels_share: share } = job.answer.profile.rounds;
    const outside = share === null ? "" : `, ${percent(share)} of it outside kernels (Python, calls, allocation)`;
    return `All rounds together took ${duration(seconds)}${outside}. A gang tells the figures of its first member.`;
  }
  if (measured.length && every > 1) return `So far, reckoned from one round in ${every}.`;
  if (measured.length) return "So far.";
  if (job.request.profile) return "Nothing yet: no round has been told.";
  if (isOver(job)) return "Not known: the training gave no answer, and the request did not have “profile”: true.";
  return "Told when the training ends. With “profile”: true in the request it would be told round by round.";
}

function rowsOfAnswer(profile) {
  return profile.stages.map((row) => ({ ...row, name: NAMES[row.stage] ?? row.stage }));
}

/** What the rounds so far and the job's own times tell, in the same form. */
function rowsSoFar(job, measured, every) {
  if (!measured.length) return [];
  const { submitted_at: submitted, started_at: started, running_at: running } = job.timings;
  const totals = totalsOf(measured);
  const rows = [
    { stage: "waiting", name: NAMES.waiting, seconds: between(submitted, started) },
    { stage: BEFORE, name: "reading, binning, compilation", seconds: between(started, running) },
    ...Object.keys(NAMES).filter((stage) => totals[stage]).map((stage) => (
      { stage, name: NAMES[stage], seconds: totals[stage] * every, per_round: totals[stage] / measured.length })),
  ];
  const all = rows.reduce((total, { seconds }) => total + seconds, 0);
  return rows.map((row) => ({ ...row, share: all > 0 ? row.seconds / all : 0 }));
}

function totalsOf(rounds) {
  const totals = {};
  for (const { stages } of rounds) {
    for (const [stage, seconds] of Object.entries(stages)) {
      if (stage !== OUTSIDE) totals[stage] = (totals[stage] ?? 0) + seconds;
    }
  }
  return totals;
}

function grouped(rounds) {
  const size = Math.max(1, Math.ceil(rounds.length / COLUMNS));
  const groups = [];
  for (let start = 0; start < rounds.length; start += size) groups.push(rounds.slice(start, start + size));
  return groups;
}
