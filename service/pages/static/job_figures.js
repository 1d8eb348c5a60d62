// What the list and a job's page say alike.

import { el } from "./dom.js";
import { count, percent } from "./format.js";

export const STATES = ["queued", "starting", "running", "cancelling", "paused", "succeeded", "failed", "cancelled"];
const FINAL = new Set(["succeeded", "failed", "cancelled"]);

export function isOver(job) {
  return FINAL.has(job.status);
}

export function statusBadge(status) {
  return el("span", { class: `badge ${status}` }, status);
}

/** The figures of the training that has just succeeded: those of an earlier one stay there while a job is resumed. */
export function answerOf(job) {
  return job.status === "succeeded" ? job.answer : null;
}

/** The error of the model, or of the rounds so far: of validation rows where there are some. */
export function errorOf(job) {
  const figures = answerOf(job) ?? job.latest;
  if (!figures) return { value: null, of: "" };
  if (figures.valid_error !== null) return { value: figures.valid_error, of: "validation" };
  return { value: figures.train_error, of: "training" };
}

/** How far it is, as a bar and in words. */
export function progressBar(job) {
  const words = `${percent(job.progress)}, ${count(job.rounds_done)} of ${count(job.rounds)} rounds`;
  return el("span", { class: "progress" },
    el("progress", { max: 1, value: job.progress, "aria-label": "Progress" }), el("span", { class: "note" }, words));
}
