"""The pages in a language other than English: its first page, its guides, and its lessons.

A page that is not translated is offered in English: links lead to it.
"""

from npformer.language import GLOSSARY, catalog, say, speaking
from npformer.learn.course.lesson import Lesson, all_lessons
from npformer.learn.course.routes import MAIN
from npformer.learn.site.course_pages import exercise_list, glossary_page
from npformer.learn.site.explorer_page import introduction
from npformer.learn.site.guide_pages import guide_pages
from npformer.learn.site.lesson_links import document_of
from npformer.learn.site.markdown import Files, document, listed, text


def translated_pages(lessons: Files, language: str, english: set[str]) -> Files:
    """Return the documents of a language.

    Args:
        lessons: The documents of its lessons, with their pictures.
        language: The language.
        english: The names of the English documents.
    """
    with speaking(language):
        course = all_lessons()
        known = [lesson for lesson in course if f"{document_of(lesson)}.md" in lessons]
        files = lessons | guide_pages(known, english, language=language)  # links to English pages
        if catalog(language, GLOSSARY):
            files |= glossary_page(known) | exercise_list(known)
        if "explorer" in english:
            files |= {"explorer.md": introduction(known)}
        return files | {"index.md": _first_page(course, files, english)}


def _first_page(course: list[Lesson], files: Files, english: set[str]) -> bytes:
    """Return the first page: the main route, the guides, and what is in English."""
    titles = {document_of(each): f"{each.number} · {each.title}" for each in MAIN.lessons}
    route = [f"1. {_link(path, titles[path], files)}" for path in titles if path in english]
    guides = [path.removesuffix(".md") for path in files if path.endswith(".md") and "lessons/" not in path]
    others = {
        "lessons/index": say("All lessons"),
        "explorer": say("The explorer"),
        "glossary": say("Glossary"),
        "exercises": say("Exercises"),
        "docs/index": say("Guides"),
        "reference/index": say("Reference"),
    }
    parts = [
        say(
            "The Transformer of *Attention Is All You Need* and its family in NumPy. Every backward pass is "
            "written by hand, and every gradient is checked."
        ),
        f"## {say('The main route')}\n\n" + "\n".join(route),
        *(
            [f"## {say('Guides')}\n\n" + "\n".join(f"- [](/{guide}.md)" for guide in guides)]
            if guides
            else []
        ),
        f"## {say('Pages in English')}\n\n"
        + "\n".join(
            f"- {_link(path, title, files)}"
            for path, title in others.items()
            if path in english and f"{path}.md" not in files
        ),
        listed([f"/{document_of(each)}" for each in course if f"{document_of(each)}.md" in files]),
        listed([f"/{guide}" for guide in guides]),
    ]
    return document("npformer", parts)


def _link(path: str, title: str, files: Files) -> str:
    """Return a link to a document of this language, or to the English one."""
    if f"{path}.md" in files:
        return f"[{text(title)}](/{path}.md)"
    return f"{{english}}`{title} <../{path}.html>`" + say(" (in English)")
