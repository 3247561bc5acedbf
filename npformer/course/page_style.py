"""How a lesson's page looks: on light and dark screens, and on paper."""

STYLE = """\
:root { color-scheme: light dark; --ink: #1d2126; --ground: #fdfdfc; --soft: #f2f3f4; --line: #d5d9dd;
  --faint: #5f6871; --comment: #5f6871; --string: #1f6f3c; --number: #0a5f94; --name: #8a2c8f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e5e8; --ground: #17191c; --soft: #212428;
  --line: #3a3f45; --faint: #9aa3ac; --comment: #9aa3ac; --string: #86cf9d;
  --number: #79bfec; --name: #d99ade; } }
body { margin: 0; color: var(--ink); background: var(--ground);
  font: 17px/1.55 Georgia, "Noto Serif", "DejaVu Serif", serif; }
main { max-width: 54rem; margin: 0 auto; padding: 2rem 1.2rem 6rem; }
main > p, main > ul, main > ol, main > blockquote { max-width: 46rem; }
h1, h2, h3 { font-family: system-ui, "Noto Sans", "DejaVu Sans", sans-serif; line-height: 1.25; }
h2 { margin-top: 2.2em; }
pre, code, .defined { font-size: .84rem;
  font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
pre { margin: 0; line-height: 1.45; white-space: pre; overflow-x: auto; }
p code, li code, td code { background: var(--soft); padding: .08em .3em; border-radius: .2em; }
.code { margin-top: 1em; padding: .7em .9em; background: var(--soft); border-left: 3px solid var(--number); }
.output { padding: .6em .9em; border-left: 3px solid var(--line); }
.defined { margin: .2em 0 1.2em; padding-left: 1.1em; color: var(--faint); }
figure { margin: 1.4em 0; }
figure img { max-width: 100%; height: auto; background: #fff; }
figcaption { color: var(--faint); font-size: .9rem; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { padding: .25em .8em; border-bottom: 1px solid var(--line); text-align: left; }
.math { display: block; overflow-x: auto; margin: 1em 0 1em 1.5em; }
.math td { border: 0; padding: .1em 1.6em .1em 0; white-space: nowrap;
  font: italic 1.08rem/1.6 "STIX Two Math", "Cambria Math", "Latin Modern Math", "DejaVu Serif", serif; }
.math sup { line-height: 0; }
blockquote { margin: 1em 0; padding-left: 1em; border-left: 3px solid var(--line); }
.c, .c1 { color: var(--comment); font-style: italic; }
.k, .kn, .kc, .ow { font-weight: bold; }
.s1, .s2, .sd, .sa, .si, .se { color: var(--string); }
.mi, .mf { color: var(--number); }
.nf, .nc { color: var(--name); }
"""
