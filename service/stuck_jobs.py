"""What a runner remembers of jobs that could not start: since when, and how soon to try again."""

from collections.abc import Callable, Collection

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds before a job is placed again whose workers were not to be had


class StuckJobs:
    """Times of one runner; another runner, or this one started again, begins anew. Used by its threads at once: every
    method is one step on dictionaries of which each job's entry is its own."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        self._pauses: dict[str, float] = {}
        self._again: dict[str, float] = {}

    def seconds(self, job_id: str) -> float:
        """For how long the job has been stuck."""
        return self._clock() - self._since[job_id] if job_id in self._since else 0.0

    def pauses(self, job_id: str) -> bool:
        """Whether it is too early to place the job again."""
        return self._clock() < self._again.get(job_id, 0.0)

    def found_stuck(self, job_ids: Collection[str], waiting: Collection[str]) -> None:
        """Of the waiting jobs these could not start anywhere; the others could, or were not looked at."""
        for job_id in job_ids:
            self._since.setdefault(job_id, self._clock())
        for job_id in set(waiting) - set(job_ids) - set(self._pauses):
            self._since.pop(job_id, None)

    def not_to_be_had(self, job_id: str) -> None:
        """The job was placed, but its workers were taken by others or gone."""
        self._since.setdefault(job_id, self._clock())
        pause = min(2 * self._pauses.get(job_id, FIRST_PAUSE / 2), LONGEST_PAUSE)
        self._pauses[job_id] = pause
        self._again[job_id] = self._clock() + pause

    def forget(self, job_id: str) -> None:
        """The job has had its workers."""
        for times in (self._since, self._pauses, self._again):
            times.pop(job_id, None)
