"""Grade all submissions of a class in parallel, and keep each result as soon as it is there.

A result is stored in a file whose name is a digest of everything that it depends on: the solution, the
exercise, the seed, the points, the limits and the version of npformer. So the same command goes on after an
interruption, and only what has changed is graded again.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue

from npformer.errors import UserError
from npformer.language import INTERFACE, phrase, say
from npformer.learn.classroom.assess import MISSING, UNREADABLE, Result, without_solution
from npformer.learn.classroom.assignment import Assignment
from npformer.learn.classroom.submissions import Submission, Unreadable, solution_of
from npformer.learn.classroom.worker import ENDED, Worker, result_from
from npformer.storage.atomic import make_folder, write_file
from npformer.storage.json_files import read_json
from npformer.version import __version__


@dataclass
class StudentsWork:
    """The solutions of a student, and their results as far as they are known.

    Args:
        student: The name of the student, as it is in the folder.
        texts: The text of each solution that was submitted, by exercise.
        results: The results by exercise.
    """

    student: str
    texts: dict[str, str] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)

    @property
    def points(self) -> float:
        """The sum of the points."""
        return sum(result.points for result in self.results.values())


def read_class(assignment: Assignment, submissions: Sequence[Submission]) -> list[StudentsWork]:
    """Read all solutions. What is missing or cannot be read has a result already.

    Args:
        assignment: The assignment.
        submissions: The submissions.
    """
    works = []
    for submission in submissions:
        work = StudentsWork(submission.student)
        for name in assignment.exercises:
            try:
                text = solution_of(submission, name)
            except Unreadable as error:
                work.results[name] = without_solution(assignment, name, UNREADABLE, str(error))
                continue
            if text is None:
                message = say(
                    "there is no file {name}.py, and no other file defines its functions", name=name
                )
                work.results[name] = without_solution(assignment, name, MISSING, message)
            else:
                work.texts[name] = text
        works.append(work)
    return works


def grade_class(
    assignment: Assignment,
    works: Sequence[StudentsWork],
    store: Path,
    workers: int,
    finished: Callable[[StudentsWork], None] = lambda work: None,
) -> int:
    """Grade all solutions that have no result yet. An interruption leaves the results that are there.

    Args:
        assignment: The assignment.
        works: The solutions of the students. Their results are added.
        store: The folder of the stored results.
        workers: The number of solutions that are graded at the same time.
        finished: Called with each student whose last result has arrived.

    Returns:
        The number of solutions that were graded now, and not read from the store. Equal ones count once.

    Raises:
        UserError: If the folder cannot be written to.
    """
    make_folder(store)
    # by key: the places of a solution, since several students may have the same one
    waiting: dict[str, list[tuple[StudentsWork, str]]] = {}
    for work in works:
        for name, text in work.texts.items():
            key = _key(assignment, name, text)
            found = _stored(store / f"{key}.json", name)
            if found is None:
                waiting.setdefault(key, []).append((work, name))
            else:
                work.results[name] = found
        if len(work.results) == len(assignment.exercises):
            finished(work)
    jobs = {key: (places[0][1], places[0][0].texts[places[0][1]]) for key, places in waiting.items()}

    def arrived(key: str, result: Result) -> None:
        if result.message == ENDED:  # the next time may end otherwise
            result = replace(result, message=phrase(ENDED, INTERFACE))
        else:
            write_file(store / f"{key}.json", json.dumps(result.as_settings(), indent=1).encode())
        for work, name in waiting[key]:
            work.results[name] = result
            if len(work.results) == len(assignment.exercises):
                finished(work)

    _run(assignment, jobs, workers, arrived)
    return len(jobs)


def _run(
    assignment: Assignment,
    jobs: dict[str, tuple[str, str]],
    workers: int,
    arrived: Callable[[str, Result], None],
) -> None:
    """Grade the jobs, which are pairs of an exercise and a text, and call arrived(key, result) for each."""
    idle: SimpleQueue[Worker] = SimpleQueue()
    all_workers = [Worker() for _ in range(min(workers, len(jobs)))]
    for worker in all_workers:
        idle.put(worker)

    def grade(name: str, text: str) -> Result:
        worker = idle.get()
        try:
            return worker.assess(assignment, name, text)
        finally:
            idle.put(worker)

    with ThreadPoolExecutor(max(1, len(all_workers))) as pool:
        try:
            left: dict[Future[Result], str] = {pool.submit(grade, *job): key for key, job in jobs.items()}
            while left:
                for future in wait(left, timeout=1.0, return_when=FIRST_COMPLETED).done:
                    arrived(left.pop(future), future.result())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in all_workers:
                worker.close()


def _key(assignment: Assignment, name: str, text: str) -> str:
    """Return the digest of everything that a result depends on."""
    settings = {**assignment.as_settings(), "exercises": [name], "text": text, "version": __version__}
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _stored(path: Path, name: str) -> Result | None:
    """Return a stored result, or None if there is none or it is damaged."""
    if not path.is_file():
        return None
    try:
        result = result_from(read_json(path, "a stored result", ""))
    except UserError:
        return None
    return result if result is not None and result.exercise == name else None
