// Builds elements. Whatever comes from the server becomes text or an attribute's value, never markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** An HTML element; functions among the attributes listen to the event of their name, null children are left out. */
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same of SVG. */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

/** Put new content into a place if it differs from what is there. Whoever had a link in focus there still has. */
export function show(place, ...children) {
  const fresh = el("div", {}, ...children);
  const old = [...place.childNodes];
  const same = old.length === fresh.childNodes.length && old.every((node, i) => node.isEqualNode(fresh.childNodes[i]));
  if (same) return;
  const link = place.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  place.replaceChildren(...fresh.childNodes);
  if (link !== null) place.querySelector(`a[href="${CSS.escape(link)}"]`)?.focus();
}

/** A table; each column is {title, number, whole, cell}: cell makes a row's content, numbers stand at the right, and
 * what is whole stays on one line. Narrow screens show cells with their titles, one below the other (style.css), so the
 * roles are said again for readers of the screen. */
export function table(caption, columns, rows) {
  const style = ({ number, whole }) => [number && "number", whole && "whole"].filter(Boolean).join(" ") || null;
  const heads = columns.map((column) =>
    el("th", { scope: "col", role: "columnheader", class: style(column) }, column.title),
  );
  const line = (row) =>
    el("tr", { role: "row" }, columns.map((column) =>
      el("td", { role: "cell", "data-title": column.title, class: style(column) },
        el("span", {}, column.cell(row))),
    ));
  return el("table", { role: "table" },
    el("caption", {}, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)),
    el("tbody", { role: "rowgroup" }, rows.map(line)),
  );
}

/** Pairs of a name and a value; pairs without a value are left out. */
export function pairs(list) {
  const said = list.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", {}, said.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

/** A section with its heading. */
export function section(id, title, ...children) {
  return el("section", { "aria-labelledby": id }, el("h2", { id }, title), ...children);
}
