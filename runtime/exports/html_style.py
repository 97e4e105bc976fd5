"""How the exported page looks: light and dark, narrow and wide, on screen and on paper. Plain CSS, no address in it."""

STYLE = """
:root { color-scheme: light dark;
  --page: #fdfcfa; --ink: #23211f; --dim: #6b655e; --line: #e2ddd5; --soft: #f4f1ec; --user: #eef3f1; --accent: #23695d;
  --bad: #a8321f; --warn: #8a5a00; --code: #f1eee8; }
@media (prefers-color-scheme: dark) { :root {
  --page: #181715; --ink: #e6e1da; --dim: #9d958b; --line: #35322e; --soft: #211f1c; --user: #1d2825; --accent: #7cc5b5;
  --bad: #f08b78; --warn: #d9a648; --code: #24211e; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; background: var(--page); color: var(--ink); line-height: 1.55;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; overflow-wrap: break-word; }
a { color: var(--accent); }
h1 { font-size: 1.45rem; line-height: 1.25; margin: 0 0 1rem; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .86em; }
.page { display: grid; grid-template-columns: minmax(0, 17rem) minmax(0, 48rem); gap: 2.5rem; justify-content: center;
  padding: 0 1.5rem; }
.side { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto; padding: 1.8rem 0 2rem;
  font-size: .86rem; scrollbar-width: thin; }
.side > summary { font-weight: 600; cursor: pointer; margin-bottom: .6rem; }
.side h2 { font-size: .78rem; text-transform: uppercase; letter-spacing: .06em; color: var(--dim);
  margin: 1rem 0 .3rem; }
.side ul { list-style: none; margin: 0; padding: 0; }
.side a { display: block; padding: .18rem .5rem; color: var(--ink); text-decoration: none; border-radius: .3rem;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; border-left: 2px solid transparent; }
.side a:hover, .side a:focus-visible { background: var(--soft); border-left-color: var(--accent); }
.side a.cut { color: var(--dim); font-style: italic; }
.side label { display: flex; gap: .5rem; align-items: baseline; padding: .18rem .5rem; border-radius: .3rem;
  cursor: pointer; }
.side label:hover { background: var(--soft); }
.side label input { accent-color: var(--accent); margin: 0; }
main { padding: 1.8rem 0 4rem; min-width: 0; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0 0 1.5rem;
  font-size: .88rem; }
.facts dt { color: var(--dim); } .facts dd { margin: 0; overflow-wrap: anywhere; }
article { margin: 1.1rem 0; }
.about { display: flex; flex-wrap: wrap; gap: .1rem .6rem; align-items: baseline; font-size: .82rem;
  color: var(--dim); margin-bottom: .25rem; }
.about b { color: var(--ink); font-size: .92rem; }
.about .n { color: var(--dim); text-decoration: none; font-variant-numeric: tabular-nums; }
.about .n:hover { text-decoration: underline; }
.tag { border: 1px solid var(--line); border-radius: 1rem; padding: 0 .5rem; }
.tag.money { border: 0; padding: 0; }
.tag.bad { color: var(--bad); border-color: currentColor; }
.user .words { background: var(--user); border-radius: .6rem; padding: .6rem .9rem; }
.plain { white-space: pre-wrap; overflow-wrap: anywhere; }
.text > :first-child, .plain > :first-child { margin-top: 0; } .text > :last-child { margin-bottom: 0; }
.text h3, .text h4, .text h5, .text h6 { font-size: 1.02rem; margin: 1.1em 0 .4em; }
.text h3 { font-size: 1.15rem; }
.text blockquote { margin: .8em 0; padding-left: .9em; border-left: 3px solid var(--line); color: var(--dim); }
.text :not(pre) > code { background: var(--code); padding: .1em .3em; border-radius: .25em; overflow-wrap: anywhere; }
.text table { border-collapse: collapse; display: block; overflow-x: auto; max-width: 100%; }
.text th, .text td { border: 1px solid var(--line); padding: .25em .6em; text-align: left; vertical-align: top; }
.text .right { text-align: right; } .text .center { text-align: center; }
.text hr { border: 0; border-top: 1px solid var(--line); }
.text ul, .text ol { padding-left: 1.5em; }
pre { background: var(--code); border-radius: .45rem; padding: .65rem .8rem; margin: .5rem 0; overflow: auto;
  max-height: 32rem; line-height: 1.45; tab-size: 4; scrollbar-width: thin; }
pre.wrap { white-space: pre-wrap; overflow-wrap: anywhere; }
pre code { font-size: inherit; }
img { max-width: 100%; height: auto; border-radius: .4rem; display: block; margin: .5rem 0; }
details.fold { border: 1px solid var(--line); border-radius: .5rem; margin: .45rem 0; background: var(--page); }
details.fold > summary { cursor: pointer; padding: .35rem .75rem; font-size: .87rem; overflow-wrap: anywhere;
  border-radius: .5rem; }
details.fold > summary:hover { background: var(--soft); }
details.fold > summary .dim, .dim { color: var(--dim); }
details.fold.failed > summary .dim { color: var(--bad); }
details.fold > .inside { padding: .1rem .8rem .5rem; border-top: 1px solid var(--line); }
.inside > .about { margin-top: .6rem; }
.mark { margin: 1rem 0; font-size: .87rem; color: var(--dim); }
.mark .plain { color: var(--ink); border-left: 3px solid var(--line); padding-left: .9rem; margin: .4rem 0 0; }
.mark.problem .line, .mark.problem .plain { color: var(--bad); }
.mark.waiting .line { color: var(--warn); }
.mark.head { border-top: 2px dashed var(--accent); padding-top: .45rem; margin-top: 1.8rem; }
.mark.head .line { color: var(--accent); }
.fork { border-top: 1px solid var(--line); margin: 2rem 0 0; padding-top: .4rem; font-size: .87rem; color: var(--dim); }
:target { outline: 2px solid var(--accent); outline-offset: .35rem; border-radius: .3rem; }
summary:focus-visible, a:focus-visible, input:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
@media (max-width: 60rem) {
  .page { display: block; padding: 0 1rem; }
  .side { position: static; max-height: min(40vh, 16rem); border-bottom: 1px solid var(--line); padding: 1rem 0 .6rem; }
  main { padding-top: 1.2rem; }
}
@media print {
  :root { --page: #fff; --ink: #000; --dim: #444; --line: #bbb; --soft: #fff; --user: #f2f2f2; --accent: #000;
  --code: #f6f6f6; --bad: #000; --warn: #000; }
  @page { margin: 18mm; }
  body { font-size: 10.5pt; } .page { display: block; padding: 0; } .side { display: none; } main { padding: 0; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; max-height: none; overflow: visible; }
  .about, .mark .line, summary { break-after: avoid; } img, tr { break-inside: avoid; }
  :target { outline: 0; }
}
"""
