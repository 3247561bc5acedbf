"""The site: static pages with the course, the explorer and the glossary, which work offline."""
