// Which page belongs to the address.

import { forget, tellWhetherKept } from "./api.js";
import { el, show } from "./dom.js";
import { sentence } from "./format.js";
import { showJob } from "./job.js";
import { showJobs } from "./jobs.js";
import { showModel } from "./model.js";
import { showModels } from "./models.js";

const PAGES = [
  [/^\/jobs\/([^/]+)$/, showJob],
  [/^\/models\/([^/]+)\/versions\/([^/]+)$/, showModel],
  [/^\/models$/, showModels],
  [/^\/$/, showJobs],
];

const main = document.getElementById("main");
const trouble = document.getElementById("trouble");

/** Says a problem above the page, or takes it back. What the page shows stays, unless it never showed anything. */
function tell(problem) {
  trouble.hidden = problem === null;
  if (problem === null) return;
  const words = sentence(problem.message);
  trouble.textContent = problem.passes ? `${words} Trying again …` : words;
  if (problem.status === undefined) console.error(problem); // a fault of these scripts
  if (main.querySelector("h1") === null) {
    show(main, el("p", { class: "empty" }, "Nothing to show. ", el("a", { href: "/" }, "All jobs")));
  }
}

document.getElementById("forget").addEventListener("click", () => {
  forget();
  location.reload();
});
tellWhetherKept();
for (const link of document.querySelectorAll("header nav a")) {
  if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
}
for (const [pattern, page] of PAGES) {
  const found = pattern.exec(location.pathname);
  if (found) {
    page(main, tell, ...found.slice(1));
    break;
  }
}
