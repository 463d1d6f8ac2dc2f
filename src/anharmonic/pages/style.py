"""The style sheet of every page: two themes, no script, nothing from outside."""

STYLE = """
:root{color-scheme:light dark;--page:#fbfaf7;--card:#fff;--ink:#1d2228;--soft:#5b6570;
--rule:#dfdcd4;--grid:#eceae4;--ours:#0b5fa5;--theirs:#8a4b08;--warn:#fff3d6;--warnink:#6b4600;
--c0:#0b5fa5;--c1:#c65102;--c2:#0a7d5a;--c3:#a63d86;--c4:#5c6b7a;--c5:#8a7a00;--c6:#b3261e}
@media(prefers-color-scheme:dark){:root{--page:#14171b;--card:#1b1f24;--ink:#e8e6e1;
--soft:#a3acb5;--rule:#343a41;--grid:#272c32;--ours:#6cb6ff;--theirs:#f0a35a;--warn:#3a2f14;
--warnink:#ffd98a;--c0:#6cb6ff;--c1:#ff9a57;--c2:#4fd0a5;--c3:#e58ccb;--c4:#a9b6c3;--c5:#d9c74a;
--c6:#ff8a80}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 system-ui,-apple-system,
"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;-webkit-text-size-adjust:100%}
main{max-width:62rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.75rem;line-height:1.2;margin:.5rem 0 .4rem;letter-spacing:-.015em}
h2{font-size:1.25rem;line-height:1.3;margin:0 0 .2rem;letter-spacing:-.01em}
h3{font-size:.95rem;margin:1.6rem 0 .5rem}
p{margin:.4rem 0;max-width:44rem}.soft{color:var(--soft);font-size:.9rem}
section{background:var(--card);border:1px solid var(--rule);border-radius:10px;
padding:1.25rem 1.25rem 1rem;margin:1.5rem 0}
nav{display:flex;flex-wrap:wrap;gap:.4rem;margin:1rem 0}
nav a{color:var(--ink);text-decoration:none;border:1px solid var(--rule);border-radius:99px;
padding:.15rem .7rem;font-size:.85rem;background:var(--card)}
nav a:hover,nav a:focus{border-color:var(--ours)}
code,pre{font:.85em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{background:var(--page);border:1px solid var(--rule);border-radius:6px;padding:.6rem .8rem;
overflow-x:auto;margin:.4rem 0}
.scroll{overflow-x:auto;margin:.8rem -1.25rem;padding:0 1.25rem}
table{border-collapse:collapse;width:100%;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .7rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}
th{color:var(--soft);font-weight:500;border-bottom-color:var(--rule)}
th:first-child,td:first-child{text-align:left;padding-left:0}th:last-child,td:last-child{
text-align:left;padding-right:0}
td:first-child{white-space:normal;min-width:9rem}
tr.group td{font-weight:600;padding-top:1rem;border-bottom-color:var(--rule)}
td.mine{font-weight:650;color:var(--ours)}tr.none td{color:var(--soft)}tr.none td.mine{
font-weight:400;color:var(--soft)}
tr.reduced td{background:var(--warn);color:var(--warnink);font-weight:400}
tr.reduced td:first-child{padding-left:.7rem}
figure{margin:1rem 0}figcaption{color:var(--soft);font-size:.8rem;margin-top:.5rem}
.points [role=listitem],.points .foot{display:grid;gap:0 1rem;align-items:center;
grid-template-columns:minmax(7rem,11rem) 1fr minmax(8rem,14rem)}
.points .name,.points .said{font-size:.85rem;line-height:1.25;padding:.3rem 0}
.points .said{color:var(--soft);font-size:.78rem}
.points .said span{white-space:nowrap;display:inline-block}.points .mine{color:var(--ours);
font-weight:600;margin-right:.4rem}
.points .quiet .name{color:var(--soft)}
.track,.scale{position:relative;display:block;height:1.6rem;margin:0 8px}
.track:before{content:"";position:absolute;left:-8px;right:-8px;top:50%;
border-top:1px solid var(--rule)}
.track i{position:absolute;top:0;bottom:0;border-left:1px solid var(--grid)}
.track u{position:absolute;top:0;bottom:0;border-left:2px dotted var(--soft)}
.track b{position:absolute;top:50%;width:12px;height:12px;margin:-6px 0 0 -6px}
.track .ours,.legend .ours{background:var(--ours);border-radius:50%}
.track .theirs,.legend .theirs{border:2px solid var(--theirs);transform:rotate(45deg);
width:11px;height:11px}
.track s{position:absolute;top:50%;height:4px;margin-top:-2px;background:var(--ours);
opacity:.35;border-radius:2px}
.scale i{position:absolute;transform:translateX(-50%);font-style:normal;font-size:.75rem;
color:var(--soft);top:.1rem}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;font-size:.82rem;margin-top:.6rem}
.legend span{display:inline-flex;align-items:center;gap:.45rem}
.legend b{flex:none}.legend .ours,.legend .theirs{display:inline-block;width:12px;height:12px}
.legend .theirs{width:10px;height:10px}
.plot{display:grid;grid-template-columns:3.2rem 1fr;grid-template-rows:15rem 1.4rem}
.area{position:relative;border-left:1px solid var(--rule);border-bottom:1px solid var(--rule)}
.area svg{position:absolute;inset:0;width:100%;height:100%;overflow:visible}
.area line,.area polyline{vector-effect:non-scaling-stroke;fill:none}
.area .grid{stroke:var(--grid)}.area .base{stroke:var(--soft);stroke-dasharray:2 4}
.area polyline{stroke-width:1.8;stroke-linejoin:round}.area .dashed{stroke-dasharray:6 4}
.area .band{opacity:.16;fill:currentColor;stroke:none}
.area .end{position:absolute;width:7px;height:7px;margin:0 0 -3.5px -3.5px;border-radius:50%;
background:currentColor}
.yaxis,.xaxis{position:relative;font-size:.75rem;color:var(--soft)}
.yaxis i,.xaxis i{position:absolute;font-style:normal}
.yaxis i{right:.5rem;transform:translateY(50%)}
.xaxis{grid-column:2}.xaxis i{transform:translateX(-50%);top:.25rem}
.key{width:1.3rem;border-top:3px solid currentColor}.key.dashed{border-top-style:dashed}
.key.base{border-top:2px dotted var(--soft)}
.c0{color:var(--c0);stroke:var(--c0)}.c1{color:var(--c1);stroke:var(--c1)}
.c2{color:var(--c2);stroke:var(--c2)}.c3{color:var(--c3);stroke:var(--c3)}
.c4{color:var(--c4);stroke:var(--c4)}.c5{color:var(--c5);stroke:var(--c5)}
.c6{color:var(--c6);stroke:var(--c6)}
ul{padding-left:1.1rem;margin:.4rem 0}li{margin:.25rem 0;font-size:.9rem}
summary{cursor:pointer;font-size:.9rem;color:var(--soft)}details{margin:.7rem 0}
@media(max-width:40rem){section{padding:1rem .9rem .8rem}.scroll{margin:.8rem -.9rem;
padding:0 .9rem}.points [role=listitem]{grid-template-columns:1fr auto}
.points .track{grid-column:1/-1;grid-row:2}.points .said{text-align:right;grid-column:2;
grid-row:1}.points .foot{grid-template-columns:1fr}.points .foot span:empty{display:none}
.plot{grid-template-rows:12rem 1.4rem}h1{font-size:1.45rem}}
"""
