"""Tasks, which are exercises and bugs: a child process runs the learner's file, and the parent judges it."""

from npformer.learn.tasks.folder import Folder, find_folder, option_for
from npformer.learn.tasks.registry import Task, TaskRegistry
from npformer.learn.tasks.verdict import Fault, Verdict

__all__ = ["Fault", "Folder", "Task", "TaskRegistry", "Verdict", "find_folder", "option_for"]
