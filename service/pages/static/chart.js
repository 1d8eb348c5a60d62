// Charts as SVG: lines over rounds, and stacked columns. They are drawn for the width that they have, so that their
// text is as large as the page's.

import { el, svg } from "./dom.js";
import { number } from "./format.js";

const HEIGHT = 200;
const EDGE = { top: 8, right: 12, bottom: 22, left: 52 };

/** A place for a chart with its caption and its legend; drawn again whenever its width changes. */
class Frame {
  #draw = () => {};
  #width = 0;

  constructor(title) {
    this.legend = el("ul", { class: "legend" });
    this.place = el("div", { class: "plot" });
    this.element = el("figure", {}, el("figcaption", {}, title), this.legend, this.place);
    new ResizeObserver(() => {
      if (this.place.clientWidth !== this.#width) this.#draw();
    }).observe(this.place);
  }

  /** draw: makes the SVG's children for a width. */
  fill(label, draw) {
    this.#draw = () => {
      this.#width = this.place.clientWidth;
      const width = Math.max(this.#width, 160);
      const box = { role: "img", "aria-label": label, width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` };
      this.place.replaceChildren(svg("svg", box, draw(width)));
    };
    this.#draw();
  }

  key(names) {
    this.legend.replaceChildren(...names.map(([name, style]) =>
      el("li", {}, svg("svg", { width: 22, height: 10, "aria-hidden": "true" },
        svg("line", { x1: 0, x2: 22, y1: 5, y2: 5, class: style })), name)));
  }
}

/** Ticks at round numbers, at most about `wanted` of them; whole: at whole numbers. */
export function ticks(low, high, wanted, whole = false) {
  const rough = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const fine = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const step = whole ? Math.max(1, fine) : fine;
  const found = [];
  const [first, last] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
  for (let place = first; place <= last; place += 1) found.push(place * step);
  return found;
}

/** Ticks between two decimal logarithms: at powers of ten, within few of them also at twice and five times these. */
export function logTicks(low, high, wanted) {
  if (high - low > 1.5) return ticks(low, high, wanted, true);
  const found = [];
  for (let power = Math.floor(low); power <= high; power += 1) {
    found.push(...[1, 2, 5].map((factor) => power + Math.log10(factor)).filter((tick) => tick >= low && tick <= high));
  }
  return found.length > 1 ? found : ticks(low, high, wanted);
}

function axes(width, x, y, yTitle) {
  const right = width - EDGE.right;
  const bottom = HEIGHT - EDGE.bottom;
  const below = (value) => ({ x: x.at(value), y: bottom + 16, "text-anchor": "middle", class: "tick" });
  return [
    ...y.ticks.map((value) => svg("g", { class: "tick" },
      svg("line", { x1: EDGE.left, x2: right, y1: y.at(value), y2: y.at(value) }),
      svg("text", { x: EDGE.left - 6, y: y.at(value) + 4, "text-anchor": "end" }, yTitle(value)))),
    ...x.ticks.map((value) => svg("text", below(value), number(value))),
    svg("line", { x1: EDGE.left, x2: right, y1: bottom, y2: bottom, class: "axis" }),
  ];
}

function scale(low, high, from, to, found) {
  const span = high - low || 1;
  return { at: (value) => from + ((value - low) / span) * (to - from), ticks: found };
}

function across(width, low, high, whole) {
  return scale(low, high, EDGE.left, width - EDGE.right, ticks(low, high, Math.min(6, width / 80), whole));
}

function upwards(low, high, found) {
  return scale(low, high, HEIGHT - EDGE.bottom, EDGE.top, found(low, high, 4));
}

/** Lines over `x` of records. series: [{name, style, value: of a record, or null}]; style is a class of style.css.
 * options: log: values are decimal logarithms; whole: x is; low, high: what the axis must hold; point: gets the place
 * of the record that the pointer is at. */
export class LineChart {
  #frame;
  #title;
  #series;
  #x;
  #options;

  constructor(title, series, x, options = {}) {
    [this.#frame, this.#title, this.#series, this.#x, this.#options] = [new Frame(title), title, series, x, options];
  }

  get element() {
    return this.#frame.element;
  }

  /** Draw these records, with a mark at the one of this place. */
  draw(records, mark = null) {
    const shown = this.#series.filter(({ value }) => records.some((record) => isNumber(value(record))));
    this.element.hidden = shown.length === 0;
    if (!shown.length) return;
    this.#frame.key(shown.map(({ name, style }) => [name, style]));
    this.#frame.fill(this.#label(shown, records), (width) => this.#lines(width, shown, records, mark));
  }

  #text(value) {
    return number(this.#options.log ? 10 ** value : value);
  }

  #label(shown, records) {
    const said = shown.map(({ name, value }) => {
      const there = records.filter((record) => isNumber(value(record)));
      const [first, last] = [there[0], there.at(-1)];
      const words = [first, last].map((record) => `${this.#text(value(record))} at ${number(this.#x(record))}`);
      return `${name} from ${words.join(" to ")}`;
    });
    return `${this.#title}: ${said.join("; ")}`;
  }

  #lines(width, shown, records, mark) {
    const values = shown.flatMap(({ value }) => records.map(value).filter(isNumber));
    const low = values.reduce((least, value) => Math.min(least, value), this.#options.low ?? Infinity);
    const high = values.reduce((most, value) => Math.max(most, value), this.#options.high ?? -Infinity);
    const x = across(width, this.#x(records[0]), this.#x(records.at(-1)), this.#options.whole);
    const y = upwards(low, high > low ? high : low + 1, this.#options.log ? logTicks : ticks);
    const parts = axes(width, x, y, (value) => this.#text(value));
    const along = (record) => x.at(this.#x(record));
    for (const { style, value } of shown) parts.push(line(records, style, along, value, y.at));
    if (mark !== null && records[mark]) parts.push(...this.#mark(records[mark], shown, x, y));
    if (this.#options.point) parts.push(this.#touch(width, records, x));
    return parts;
  }

  #mark(record, shown, x, y) {
    const at = x.at(this.#x(record));
    const dots = shown.filter(({ value }) => isNumber(value(record)));
    return [
      svg("line", { x1: at, x2: at, y1: EDGE.top, y2: HEIGHT - EDGE.bottom, class: "mark" }),
      ...dots.map(({ style, value }) => svg("circle", { cx: at, cy: y.at(value(record)), r: 3.5, class: style })),
    ];
  }

  #touch(width, records, x) {
    const [from, to] = [x.at(this.#x(records[0])), x.at(this.#x(records.at(-1)))];
    const point = (event) => {
      const share = (event.offsetX - from) / (to - from || 1);
      this.#options.point(Math.round(Math.min(1, Math.max(0, share)) * (records.length - 1)));
    };
    const box = { x: 0, y: 0, width, height: HEIGHT, class: "touch", pointermove: point, pointerdown: point };
    return svg("rect", box);
  }
}

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

function line(records, style, x, value, y) {
  const there = records.filter((record) => isNumber(value(record)));
  if (there.length === 1) return svg("circle", { cx: x(there[0]), cy: y(value(there[0])), r: 3, class: style });
  let path = "";
  let broken = true;
  for (const record of records) {
    const figure = value(record);
    if (isNumber(figure)) path += `${broken ? "M" : "L"}${x(record).toFixed(1)} ${y(figure).toFixed(1)}`;
    broken = !isNumber(figure);
  }
  return svg("path", { d: path, class: style, fill: "none" });
}

/** Columns of parts on top of each other, for instance seconds by stage. */
export class ColumnChart {
  #frame;
  #title;

  constructor(title) {
    [this.#frame, this.#title] = [new Frame(title), title];
  }

  get element() {
    return this.#frame.element;
  }

  /** columns: [{from, to, parts: a value for each name}], one beside the other; names: [[name, style]]; text: of a
   * value. */
  draw(columns, names, text) {
    this.element.hidden = columns.length === 0;
    if (!columns.length) return;
    this.#frame.key(names);
    const high = Math.max(...columns.map(({ parts }) => sum(parts)), Number.MIN_VALUE);
    const label = `${this.#title}: ${columns.length} columns, the highest ${text(high)}`;
    this.#frame.fill(label, (width) => {
      const x = across(width, columns[0].from, columns.at(-1).to, true);
      const y = upwards(0, high, ticks);
      return [...axes(width, x, y, text), ...columns.flatMap((column) => stack(column, names, x, y))];
    });
  }
}

function stack({ from, to, parts }, names, x, y) {
  let below = 0;
  return parts.map((part, place) => {
    const [bottom, top] = [y.at(below), y.at(below + part)];
    below += part;
    const [left, right] = [x.at(from - 0.5), x.at(to + 0.5)];
    const box = { x: left, y: top, width: Math.max(right - left, 0.5), height: bottom - top };
    return svg("rect", { ...box, class: names[place][1] });
  });
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
