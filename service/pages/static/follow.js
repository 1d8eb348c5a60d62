// Reads again and again, as long as something happens and somebody looks.

const PAUSE = 1500; // milliseconds; the server itself tells rounds a quarter of a second late
const LONGEST_PAUSE = 15_000; // while the server is away

/** Calls `step` now, and again after a pause while it answers true and the tab is visible. A problem that may pass is
 * told and tried again, less and less often; any other ends it. tell: gets the problem, or null when there is none. */
export function follow(step, tell) {
  let timer = null;
  let busy = false;
  let over = false;
  let pause = PAUSE;

  async function turn() {
    timer = null;
    busy = true;
    try {
      over = !(await step());
      pause = PAUSE;
      tell(null);
    } catch (problem) {
      over = !problem.passes;
      pause = Math.min(2 * pause, LONGEST_PAUSE);
      tell(problem);
    }
    busy = false;
    plan();
  }

  function plan() {
    const goesOn = !over && !document.hidden;
    if (goesOn) timer = setTimeout(turn, pause);
    say(goesOn);
  }

  document.addEventListener("visibilitychange", () => {
    if (busy || over) return;
    clearTimeout(timer);
    if (document.hidden) say(false);
    else turn();
  });
  turn();

  /** Read at once, also what was over: somebody has changed it. */
  return () => {
    over = false;
    clearTimeout(timer);
    if (!busy) turn();
  };
}

function say(goesOn) {
  document.getElementById("live").hidden = !goesOn;
}
