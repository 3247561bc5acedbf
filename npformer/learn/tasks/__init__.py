"""Tasks, which are exercises and bugs: a learner edits a file, a child process runs it, and the parent judges it."""

from npformer.learn.tasks.folder import Folder
from npformer.learn.tasks.registry import Task, TaskRegistry
from npformer.learn.tasks.verdict import Fault, Verdict

__all__ = ["Fault", "Folder", "Task", "TaskRegistry", "Verdict"]
