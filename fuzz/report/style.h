// SPDX-License-Identifier: MIT
//
// How a report looks: light and dark by the reader's preference, one column on a phone, print without chrome.
// Only what is wrong is loud.
#pragma once

#include <string_view>

namespace attest::fuzz::report {

inline constexpr std::string_view style = R"css(
:root{color-scheme:light dark;
--bg:#f6f7f9;--card:#fff;--fg:#1c2128;--muted:#59636e;--line:#d5dae0;--grid:#e6e9ed;--code:#eef1f4;--accent:#0550ae;
--ok:#1a7f37;--bad:#c21f2c;--warn:#8a5a00;--ok-bg:#dcf3e2;--bad-bg:#ffe3e1;--warn-bg:#fff2cf;
--v-pass:#2e9e4f;--v-fail:#d1303c;--v-crash:#7d0f1d;--v-timeout:#d9730d;--v-hazard:#7a3fc4;--v-flaky:#c9a400;
--v-harness_error:#24292f;--v-mistrusted:#5b8db8;--v-unsupported:#a9b1ba;
--h-none:#e6e9ed;--h-w0:#e3eefb;--h-w1:#b3d1f5;--h-w2:#6aa3e6;--h-f0:#f7b267;--h-f1:#e5533d;--h-f2:#7d0f1d;--h-nan:#7a2fc0;
--c-0:#f4c7c3;--c-1:#cfe0d4;--c-2:#9fcfae;--c-3:#63b47c;--c-4:#23824a;--bars:#3d7fc4;}
@media (prefers-color-scheme:dark){:root{
--bg:#0f1318;--card:#171c23;--fg:#e4e9ef;--muted:#9aa5b1;--line:#343c46;--grid:#262d36;--code:#212833;--accent:#6cb0ff;
--ok:#4cc26b;--bad:#ff7f78;--warn:#e3b341;--ok-bg:#12321d;--bad-bg:#451a1c;--warn-bg:#3a2d0c;
--v-pass:#3da35a;--v-fail:#e5484d;--v-crash:#ff9aa2;--v-timeout:#e8873a;--v-hazard:#a77cf0;--v-flaky:#dcbb2e;
--v-harness_error:#d0d7de;--v-mistrusted:#6ea3d0;--v-unsupported:#5c6670;
--h-none:#262d36;--h-w0:#172a40;--h-w1:#1f4f80;--h-w2:#3b8adf;--h-f0:#a8651f;--h-f1:#e8553f;--h-f2:#ffb0b0;--h-nan:#c58bff;
--c-0:#5a2a2c;--c-1:#22382a;--c-2:#2a5c3b;--c-3:#349055;--c-4:#5fd389;--bars:#5b9fe6;}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
header,main{max-width:1180px;margin:0 auto;padding:0 20px}
header{padding-top:22px}
.eyebrow{margin:0;color:var(--muted);font-size:13px;overflow-wrap:anywhere}
.headline{border-left:6px solid var(--line);background:var(--card);border-radius:6px;padding:14px 18px;margin:10px 0 14px}
.headline h1{margin:0;font-size:26px;line-height:1.25;overflow-wrap:anywhere}
.headline p{margin:6px 0 0;overflow-wrap:anywhere}
.headline.good{border-color:var(--ok)}.headline.good h1{color:var(--ok)}
.headline.bad{border-color:var(--bad)}.headline.bad h1{color:var(--bad)}
.headline.unsure{border-color:var(--warn)}.headline.unsure h1{color:var(--warn)}
.headline.nothing{border-color:var(--bad);background:var(--bad-bg)}.headline.nothing h1{color:var(--bad);font-size:32px;text-transform:uppercase}
.remarks{margin:0 0 14px;padding:10px 18px 10px 34px;background:var(--warn-bg);border-radius:6px;overflow-wrap:anywhere}
nav{margin:0 0 10px;font-size:14px;display:flex;flex-wrap:wrap;gap:2px 14px}
a{color:var(--accent);text-decoration:none}a:hover{text-decoration:underline}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(124px,1fr));gap:10px;margin:0 0 12px}
.tiles div{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:8px 12px}
.tiles dt{color:var(--muted);font-size:12.5px}.tiles dd{margin:0;font-size:21px;font-weight:600;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.tiles .bad dd{color:var(--bad)}.tiles .warn dd{color:var(--warn)}
.bar{display:flex;height:12px;border-radius:3px;overflow:hidden;background:var(--grid);gap:1px}
.bar i{min-width:3px;flex-basis:0}
.headline .bar,.tall{margin-top:10px}
td .bar{min-width:110px;height:10px}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:14px 18px 16px;margin:0 0 16px}
h2{margin:0 0 4px;font-size:19px}h2+p{margin-top:0}
h3{margin:0;font-size:16.5px;line-height:1.35;overflow-wrap:anywhere}h4{margin:12px 0 4px;font-size:13.5px;color:var(--muted);font-weight:600}
p{margin:6px 0}.note{color:var(--muted);font-size:13.5px}
code,pre{font:12.8px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
code{overflow-wrap:anywhere}td code{overflow-wrap:normal;white-space:nowrap}
pre{background:var(--code);border-radius:5px;padding:8px 10px;margin:6px 0;white-space:pre-wrap;overflow-wrap:anywhere}
.finding{border-top:1px solid var(--line);padding:14px 0 10px}
.finding:first-of-type{border-top:0}
.badge{display:inline-block;border-radius:4px;padding:0 8px;font-size:13px;font-weight:600;color:#fff;background:var(--muted);margin-right:6px;vertical-align:1px}
.badge.v-flaky{color:#1c2128}
.facts{color:var(--muted);font-size:13.5px;margin:4px 0}
.facts b{color:var(--fg);font-weight:600}
.where{margin:2px 0}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:13.8px}
th,td{text-align:left;padding:4px 12px 4px 0;vertical-align:top;border-bottom:1px solid var(--grid)}
thead th{color:var(--muted);font-weight:600;font-size:12.5px;white-space:nowrap}
.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
table.case th{color:var(--muted);font-weight:600;white-space:nowrap;font-size:13px}
table.case td{overflow-wrap:anywhere}
table.case tr:last-child th,table.case tr:last-child td{border-bottom:0}
.field{display:inline-block;margin-right:10px}.field b{font-weight:400;color:var(--muted)}
ul.small{font-size:13px;padding-left:18px;margin:0}
.maps{display:flex;flex-wrap:wrap;gap:6px 28px}.maps>div{max-width:100%}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(300px,100%),1fr));gap:14px 20px;margin-top:10px}
.charts figure,figure{margin:0;min-width:0}
figcaption{font-size:13px;overflow-wrap:anywhere}figcaption span{color:var(--muted)}
.charts svg,.fits svg{max-width:100%;height:auto}
svg{display:block}
.legend{font-size:12.5px;color:var(--muted);margin:6px 0}
.key{display:inline-flex;align-items:center;gap:5px;margin-right:12px;white-space:nowrap}
details{margin:6px 0}summary{cursor:pointer;color:var(--accent);font-size:14px;overflow-wrap:anywhere}
.up{color:var(--bad);font-weight:600}.down{color:var(--ok);font-weight:600}
footer{max-width:1180px;margin:0 auto;padding:0 20px 24px;color:var(--muted);font-size:13px}
.t{font:10px system-ui,"DejaVu Sans",sans-serif;fill:var(--muted)}.m{text-anchor:middle}.e{text-anchor:end}
.limit-t{fill:var(--bad)}
.axis{stroke:var(--muted);fill:none}.grid{stroke:var(--grid);fill:none}.limit{stroke:var(--bad);stroke-dasharray:3 2;fill:none}
.beyond{fill:var(--bad-bg)}.b-ok{fill:var(--bars)}.b-bad{fill:var(--v-fail)}
.before{fill:none;stroke:var(--fg);stroke-width:1.2}
.rate{fill:var(--bars);fill-opacity:.35;stroke:var(--bars)}.resumed{stroke:var(--warn);stroke-dasharray:4 3}.lost{stroke:var(--bad);stroke-width:2}
.lattice{stroke:var(--card);fill:none}
.v-pass{background:var(--v-pass)}.v-fail{background:var(--v-fail)}.v-crash{background:var(--v-crash)}.v-timeout{background:var(--v-timeout)}
.v-hazard{background:var(--v-hazard)}.v-flaky{background:var(--v-flaky)}.v-harness_error{background:var(--v-harness_error)}
.v-mistrusted{background:var(--v-mistrusted)}.v-unsupported{background:var(--v-unsupported)}.v-other{background:var(--muted)}
.h-none{fill:var(--h-none)}.h-w0{fill:var(--h-w0)}.h-w1{fill:var(--h-w1)}.h-w2{fill:var(--h-w2)}.h-f0{fill:var(--h-f0)}
.h-f1{fill:var(--h-f1)}.h-f2{fill:var(--h-f2)}.h-nan{fill:var(--h-nan)}
.c-0{fill:var(--c-0)}.c-1{fill:var(--c-1)}.c-2{fill:var(--c-2)}.c-3{fill:var(--c-3)}.c-4{fill:var(--c-4)}
@media (prefers-color-scheme:dark){.badge.v-crash,.badge.v-harness_error{color:#1c2128}}
@media (max-width:600px){header,main,footer{padding-left:10px;padding-right:10px}section{padding:12px}
.headline h1{font-size:22px}.headline.nothing h1{font-size:25px}.tiles{grid-template-columns:repeat(auto-fill,minmax(100px,1fr));gap:6px}
.tiles dd{font-size:18px}table.case th{white-space:normal}}
@media print{nav{display:none}section{break-inside:avoid-page;border:0}}
)css";

}  // namespace attest::fuzz::report
