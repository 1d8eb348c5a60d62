"""`edgewise train`: the service's own path from a request to a model, without the service."""

import contextlib
import hashlib
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from boost_core.model import Model
from boost_core.records import StopReason
from service.cli_output import reporting
from service.cli_progress import ConsoleProgress, interruptible
from service.cluster_link import ClusterLink
from service.errors import Interrupted, MalformedBody, RequestRefused, StartRefused
from service.memory_check import refuse_too_large
from service.profile import show_profile
from service.requests import TrainingRequest, parse, prepare
from service.safe_json import decode
from service.scheduling import in_gb
from service.settings import Settings, checked_cluster, load_settings
from service.trainer import Trainer
from service.training_answer import training_answer
from service.warm_start import HERE, check_start
from workers.checkpoint_store import checkpoints_at, kept_rounds
from workers.job import CheckpointSettings, TrainingJob, TrainingOutcome
from workers.memory_need import estimate, facts_of
from workers.model_file import read_model, write_model


@dataclass(frozen=True)
class Arguments:
    """What the command line says."""

    job: Path
    out: Path
    workers: int | None
    cluster: str | None
    data_root: Path
    resume: bool = False
    profile: bool = False

    @property
    def checkpoint_name(self) -> str:
        """The same for the same file of the model: a later command finds the checkpoints of an earlier one."""
        return "train-" + hashlib.sha256(os.fsencode(self.out.absolute())).hexdigest()[:24]


def run(arguments: Arguments, *, as_json: bool) -> None:
    """Train and write the model; the answer is that of a job over HTTP."""
    with reporting(as_json) as output:
        request = read_request(arguments.job)
        link = _link(arguments, request)
        _check_out(arguments.out)
        plan, config = prepare(request, arguments.data_root)
        start = _start(request)
        check_start(start, plan, config)
        settings = load_settings()
        threads, kept = request.resources.threads, _checkpoints(arguments, settings)
        job = TrainingJob(
            uuid.uuid4().hex, 1, plan, config, threads, checkpoints=kept, resume=arguments.resume, warm_start=start
        )
        try:
            trainer = Trainer(link, settings.deadline_seconds)
            outcome = _train(job, trainer, lambda: _n_workers(arguments, request, link))
        finally:
            if link is not None:
                link.close()
        if outcome.stop_reason is StopReason.CANCELLED:
            raise Interrupted(
                f"interrupted after {len(outcome.rounds)} rounds; no model was written; --resume goes on from there"
            )
        answer = training_answer(outcome, plan, write_model(arguments.out, outcome.model))
        with contextlib.suppress(OSError):
            checkpoints_at(settings.checkpoints).delete(arguments.checkpoint_name)
        output.answer(answer, _text(answer, arguments.out))
        if arguments.profile or request.profile:
            show_profile(answer["profile"], Console(stderr=as_json))


def read_request(path: Path) -> TrainingRequest:
    """The request in a JSON file. Raises RequestRefused or MalformedBody, as for a body over HTTP."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RequestRefused([(("job",), f"cannot read {path}: {error.strerror}")]) from None
    try:
        return parse(decode(data))
    except MalformedBody as error:
        raise MalformedBody(f"{path}: {error}") from None


def _link(arguments: Arguments, request: TrainingRequest) -> ClusterLink | None:
    """The cluster to train on, not yet connected: the flag wins over the body, the body over the default."""
    wanted = request.resources.workers if arguments.workers is None else arguments.workers
    target = arguments.cluster
    if target is None and wanted not in ("auto", 0):
        target = f"local:{wanted}"
    if not target or arguments.workers == 0:
        return None
    try:
        tls_dir = load_settings().tls_dir
        if target.startswith("tls://") and tls_dir is None:
            raise ValueError(f"cluster {target!r} needs the certificates of a member: set EDGEWISE_TLS_DIR (TLS)")
        return ClusterLink(checked_cluster(target), tls_dir)
    except ValueError as error:
        raise StartRefused(str(error)) from None


def _check_out(out: Path) -> None:
    """Find out before the training that the model cannot be written after it."""
    if out.is_dir():
        raise RequestRefused([(("out",), f"{out} is a folder; name a file")])
    if not out.absolute().parent.is_dir():
        raise RequestRefused([(("out",), f"the folder of {out} does not exist; create it first")])


def _start(request: TrainingRequest) -> Model | None:
    """The model file to go on from. Raises RequestRefused or ModelFileError."""
    named = request.warm_start
    if named is None:
        return None
    if named.file is None:
        raise RequestRefused([((*HERE, "model"), "there is no registry here; name a model file under file")])
    return read_model(Path(named.file))


def _checkpoints(arguments: Arguments, settings: Settings) -> CheckpointSettings:
    """Where the training keeps its checkpoints. Those of an earlier one are gone, unless it shall go on from them."""
    store = checkpoints_at(settings.checkpoints)
    if not arguments.resume:
        with contextlib.suppress(OSError):
            store.delete(arguments.checkpoint_name)
    elif not kept_rounds(store, arguments.checkpoint_name):
        raise RequestRefused([(("resume",), f"no checkpoint of a training for {arguments.out}; leave out --resume")])
    return CheckpointSettings(settings.checkpoints, settings.checkpoint_seconds, arguments.checkpoint_name)


def _train(job: TrainingJob, trainer: Trainer, n_workers: Callable[[], int]) -> TrainingOutcome:
    with interruptible() as interrupted:
        trainer.prepare()
        n_members = n_workers()
        refuse_too_large(n_members, estimate(facts_of(job.plan, job.config)), trainer.site(own_busy=False))
        progress = ConsoleProgress(job.config.rounds, interrupted)
        with progress.shown():
            return trainer.train(job, n_members, progress)


def _n_workers(arguments: Arguments, request: TrainingRequest, link: ClusterLink | None) -> int:
    if link is None:
        return 0
    if arguments.workers is not None:
        return arguments.workers
    if isinstance(request.resources.workers, int) and request.resources.workers > 0:
        return request.resources.workers
    # A cluster was named and no number: all of it.
    return max(1, link.n_workers())


def _text(answer: dict[str, Any], out: Path) -> str:
    seconds = answer["seconds"]
    where = f"on {answer['workers']} workers" if answer["workers"] else "in this process"
    lines = [
        f"model {out} ({answer['model_sha256']})",
        f"{answer['rounds']} rounds {where} in {seconds['total']:.1f} s, ended by {answer['stop_reason']}",
        f"train error {_figure(answer['train_error'])}, valid error {_figure(answer['valid_error'])}",
        f"loss {_figure(answer['loss'])}, proved bound {_figure(answer['bound'])}",
        f"memory of a worker {in_gb(answer['peak_memory_bytes'])}, "
        f"estimated before {in_gb(answer['estimated_memory_bytes'])}",
    ]
    return "\n".join(lines)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
