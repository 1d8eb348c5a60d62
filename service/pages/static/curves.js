// The curves of a job by round, and the figures of the round that is marked in them.

import { LineChart } from "./chart.js";
import { el, pairs, section, show } from "./dom.js";
import { count, duration, number, percent } from "./format.js";

const DECADE = Math.LN10;
const decimal = (name) => (record) => (record[name] === null ? null : record[name] / DECADE);
const plain = (name) => (record) => record[name];
const log10 = (name) => (record) => (record[name] > 0 ? Math.log10(record[name]) : null);
const round = (record) => record.round;

/** The section of a job's page. */
export class CurvePart {
  #records = [];
  #moved = false; // else the mark stays at the last round
  #slider = el("input", { type: "range", id: "round", min: 0, max: 0, input: () => this.#choose(this.#place) });
  #words = el("div");
  #figures = el("div", { class: "figures" });
  #control = el("p", { class: "slider" }, el("label", { for: "round" }, "Round"), this.#slider);
  #charts = this.#allCharts();
  element = section("curves", "Curves", this.#words, this.#control, this.#figures,
    el("div", { class: "charts" }, this.#charts.map((chart) => chart.element)));

  #allCharts() {
    const chart = (title, series, options) =>
      new LineChart(title, series, round, { whole: true, ...options, point: (place) => this.#choose(place) });
    return [
      chart("Error", [
        { name: "training", style: "line a", value: plain("train_error") },
        { name: "validation", style: "line b", value: plain("valid_error") },
      ], { low: 0 }),
      chart("Edge", [{ name: "edge", style: "line a", value: plain("edge") }], { low: 0 }),
      chart("Loss and bounds (logarithmic)", [
        { name: "loss", style: "line a", value: decimal("ln_loss") },
        { name: "bound of the loss", style: "line b", value: decimal("ln_bound") },
        { name: "bound of the training error", style: "line c", value: log10("error_bound") },
      ], { log: true }),
      chart("Alpha (step)", [{ name: "alpha", style: "line a", value: plain("alpha") }], { low: 0 }),
    ];
  }

  draw(records, over) {
    this.#records = records;
    this.#control.hidden = records.length === 0;
    const none = over ? "No round was trained." : "No round has been told yet.";
    show(this.#words, records.length ? null : el("p", {}, none));
    const last = Math.max(records.length - 1, 0);
    this.#slider.max = last;
    this.#mark(this.#moved ? Math.min(this.#place, last) : last);
  }

  get #place() {
    return this.#slider.valueAsNumber;
  }

  #choose(place) {
    this.#moved = place < this.#records.length - 1;
    this.#mark(place);
  }

  #mark(place) {
    const record = this.#records[place];
    this.#slider.value = place;
    if (record) this.#slider.setAttribute("aria-valuetext", `round ${record.round}`);
    show(this.#figures, record ? figures(record) : null);
    for (const chart of this.#charts) chart.draw(this.#records, place);
  }
}

function figures(record) {
  return pairs([
    ["Round", count(record.round)],
    ["Training error", percent(record.train_error)],
    ["Validation error", record.valid_error === null ? null : percent(record.valid_error)],
    ["Edge", number(record.edge)],
    ["Alpha", number(record.alpha)],
    ["Loss", number(record.loss)],
    ["Bound of the loss", number(record.bound)],
    ["Leaves", count(record.n_leaves)],
    ["Took", duration(record.seconds)],
  ]);
}

/** How far the training rows' labels lead: the section with the share of rows with at most each margin. */
export function marginSection(margins) {
  const records = margins.grid.map((margin, place) => ({ margin, share: margins.shares[place] }));
  const series = [{ name: "share of rows with at most this margin", style: "line a", value: plain("share") }];
  const chart = new LineChart("Margins of the training rows", series, plain("margin"), { low: 0, high: 1 });
  chart.draw(records);
  const [least, mean] = [number(margins.least), number(margins.mean)];
  const words = `The least margin is ${least}, the mean ${mean}; rows above 0 are predicted right.`;
  return section("margins", "Margins", el("p", {}, words), chart.element);
}
