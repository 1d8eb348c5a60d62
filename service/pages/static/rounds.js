// The rounds of a job as far as they were told: all of them, or of many every second, fourth, eighth ...

import { call } from "./api.js";

const POINTS = 1500; // more than a screen has columns for
const LIMIT = 1000;

export class Rounds {
  #id;
  #run = null;
  #after = 0;
  every = 1; // a power of two, so that what is there stays of use when it grows
  list = [];

  constructor(id) {
    this.#id = id;
  }

  /** Read what is new; the answer ends with the last round, whichever it is. A new run begins again. */
  async read(job) {
    if (job.run !== this.#run) this.#begin(job.run);
    this.#thin(job.rounds_done);
    for (;;) {
      const query = new URLSearchParams({ after: this.#after, limit: LIMIT, every: this.every });
      const answer = await call(`/v1/jobs/${this.#id}/rounds?${query}`);
      // Another run has begun since the job was read: the next reading shows it.
      if (answer.run !== this.#run) return [];
      this.list.push(...answer.rounds);
      this.#after = answer.next_after;
      if (answer.rounds.length < LIMIT) return this.#withLatest(job);
    }
  }

  #begin(run) {
    [this.#run, this.#after, this.every, this.list] = [run, 0, 1, []];
  }

  #thin(done) {
    while (done > POINTS * this.every) this.every *= 2;
    if (this.every > 1) this.list = this.list.filter((record) => record.round % this.every === 0);
  }

  #withLatest({ latest }) {
    const last = this.list.at(-1)?.round ?? 0;
    return latest && latest.round > last ? [...this.list, latest] : this.list;
  }
}
