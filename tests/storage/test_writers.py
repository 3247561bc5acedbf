"""Every file that the package writes goes through npformer.storage.atomic."""

import ast
from pathlib import Path

import npformer

PACKAGE = Path(npformer.__file__).parent

# the calls that may write a file by themselves, each with the reason
ALLOWED = {
    ("storage/atomic.py", "open"): "the temporary file of an atomic write",
    ("storage/atomic.py", "os.open"): "a folder, only to flush it",
    ("storage/atomic.py", "os.replace"): "the rename of an atomic write",
    ("storage/atomic.py", "os.link"): "the new name of an atomic write",
    ("storage/atomic.py", "write_bytes"): "a device such as /dev/null, which has no content to keep",
    ("training/run_folder.py", "FileIO"): "the log of a run, to which whole lines are appended",
    ("data/download.py", "open"): "the part of a download, to which data are appended",
    ("data/download.py", "os.replace"): "the rename of a complete download",
    ("cli/output.py", "os.open"): "/dev/null, in the place of a standard stream that is closed",
    ("learn/course/terminal_questions.py", "os.open"): "the terminal, which is not a file",
    ("learn/tasks/child.py", "os.open"): "/dev/null, as the standard streams of a learner's code",
    ("learn/tasks/confinement.py", "write_text"): "the numbers of users in a namespace, not files",
    ("learn/tasks/confinement.py", "os.open"): "a folder, only to name it to Landlock",
    ("plots/style.py", "savefig"): "a buffer in memory",
    ("plots/composition.py", "save"): "a buffer in memory",
    ("learn/course/pictures.py", "savefig"): "a buffer in memory",
    ("learn/site/markdown.py", "savefig"): "a buffer in memory",
    ("learn/site/build.py", "write_bytes"): "a temporary folder, from which Sphinx reads",
    ("learn/site/folder.py", "shutil.copy"): "a site, over a half-written one, too",
    ("learn/site/folder.py", "shutil.copytree"): "a site, over a half-written one, too",
    ("learn/site/search_index.py", "write_text"): "a temporary folder, to which Sphinx writes",
}
METHODS = {"write_text", "write_bytes", "touch", "savefig", "symlink_to", "hardlink_to", "rename"}
MODULES = {
    "os": {"open", "replace", "rename", "link", "symlink", "mkfifo"},
    "np": {"save", "savez", "savez_compressed", "savetxt"},
    "shutil": {"copy", "copy2", "copyfile", "copytree", "move"},
    "io": {"FileIO", "open"},
}
DUMPING = ("image", "first", "json", "pickle")


def writers_in(source):
    """Yield the names of the calls in a source that write files."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Name):
            if function.id == "open" and _may_write(node, 1):
                yield "open"
        elif isinstance(function, ast.Attribute):
            module = function.value.id if isinstance(function.value, ast.Name) else ""
            if function.attr in MODULES.get(module, ()):
                yield function.attr if module in ("np", "io") else f"{module}.{function.attr}"
            elif function.attr in METHODS:
                yield function.attr
            elif function.attr == "open" and module != "os" and _may_write(node, module == "gzip"):
                yield "open"
            elif function.attr in ("save", "tofile", "dump") and module in DUMPING:
                yield function.attr


def _may_write(node, position):
    """Return whether the mode of a call of open is one of writing, or not known."""
    modes = [keyword.value for keyword in node.keywords if keyword.arg == "mode"]
    modes += node.args[position : position + 1]
    if not modes:
        return False
    return not isinstance(modes[0], ast.Constant) or bool(set(str(modes[0].value)) & set("wax+"))


def test_only_these_calls_write_and_every_exception_is_needed():
    found = {
        (path.relative_to(PACKAGE).as_posix(), call)
        for path in sorted(PACKAGE.rglob("*.py"))
        for call in writers_in(path.read_text(encoding="utf-8"))
    }
    assert found - ALLOWED.keys() == set(), "use npformer.storage.atomic"
    assert ALLOWED.keys() - found == set()


def test_writers_are_found_and_readers_are_none():
    lines = [
        *("open(path, 'w')", "open(path, mode='ab')", "open(path, mode)", "path.open('x')", "path.touch()"),
        *("path.write_text('x')", "path.write_bytes(b'')", "os.replace(a, b)", "np.save(path, x)"),
        *("figure.savefig(path)", "shutil.copy(a, b)", "gzip.open(path, 'wb')", "io.FileIO(path, 'w')"),
    ]
    readers = ["open(path)", "open(path, 'rb')", "path.open()", "text.replace('a', 'b')"]
    assert [line for line in lines + readers if list(writers_in(line))] == lines
