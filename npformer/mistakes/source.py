"""The source of the functions that run in a backward pass, and the functions with a changed source."""

import ast
import gc
import linecache
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any, TypeAlias

Definition: TypeAlias = ast.FunctionDef | ast.Lambda


class EditableFunction:
    """A function whose syntax tree may be changed, and which then runs with the change.

    Attributes:
        definition: The node of the function. Changes of it take effect in `replaced`.
        functions: The functions with this code, which `replaced` changes. `find_functions` finds them.

    Raises:
        LookupError: If the source is not known or does not show where the function is.
    """

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.functions: list[FunctionType] = []
        try:
            self.module = ast.parse("".join(linecache.getlines(code.co_filename)))
        except SyntaxError as error:
            raise LookupError(f"{code.co_filename} has no source") from error
        paths = list(_paths_to(self.module, code))
        if len(paths) != 1:
            raise LookupError(f"{code.co_name} is not in {code.co_filename}, or not alone in its line")
        self.definition: Definition = paths[0][-1]
        for holder, inner in zip(paths[0], paths[0][1:], strict=False):
            if isinstance(holder, (ast.Module, ast.ClassDef)):
                holder.body = [inner]  # the rest has no effect on the code of the function

    @contextmanager
    def replaced(self) -> Iterator[None]:
        """Run the function as its changed tree says, inside a with block.

        Raises:
            SyntaxError, ValueError: If the changed tree is no function with the same outer variables.
        """
        module = compile(self.module, self.code.co_filename, "exec", dont_inherit=True)
        code = next(item for item in _codes_in(module) if _place(item) == _place(self.code))
        if code.co_freevars != self.code.co_freevars:
            raise ValueError("the outer variables differ")
        try:
            for function in self.functions:
                function.__code__ = code
            yield
        finally:
            for function in self.functions:
                function.__code__ = self.code


def find_functions(editable: Sequence[EditableFunction]) -> None:
    """Find the functions of all these codes, for which Python goes once through all objects in memory."""
    codes = [function.code for function in editable]
    found = [item for item in gc.get_referrers(*codes) if isinstance(item, FunctionType)]
    for function in editable:
        function.functions = [item for item in found if item.__code__ is function.code]


def _paths_to(module: ast.Module, code: CodeType) -> Iterator[list[Any]]:
    """Yield the nodes from the module down to each definition that may be that of the code."""

    def below(node: Any, path: list[Any]) -> Iterator[list[Any]]:
        if isinstance(node, (ast.FunctionDef, ast.Lambda)) and _is_definition_of(node, code):
            yield path
        for child in ast.iter_child_nodes(node):
            yield from below(child, [*path, child] if _holds_definitions(child, path[-1]) else path)

    yield from below(module, [module])


def _holds_definitions(child: ast.AST, holder: ast.AST) -> bool:
    """Return whether a node belongs to a path: definitions, and statements of a module or a class."""
    return isinstance(child, (ast.FunctionDef, ast.Lambda, ast.ClassDef)) or (
        isinstance(holder, (ast.Module, ast.ClassDef)) and isinstance(child, ast.stmt)
    )


def _is_definition_of(node: Definition, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
    first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
    return node.name == code.co_name and first == code.co_firstlineno


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    for item in code.co_consts:
        if isinstance(item, CodeType):
            yield item
            yield from _codes_in(item)


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_name, code.co_firstlineno
