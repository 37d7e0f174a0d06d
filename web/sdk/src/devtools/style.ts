// A sheet rather than a style element: a content security policy without 'unsafe-inline' allows it.
export const style = `
:host { --surface: #fff; --raised: #eef0f4; --line: #d4d9e1; --text: #1a1f29; --dim: #566072; --accent: #2456c7; --on: #fff; --bad: #b7242b; --good: #1c7a46;
  position: fixed; inset: auto 0 0 0; z-index: 2147483000; height: min(44vh, 460px); display: flex; flex-direction: column; color-scheme: light dark;
  background: var(--surface); color: var(--text); border-top: 1px solid var(--line); box-shadow: 0 -6px 24px #0002; font: 12px/1.5 system-ui, sans-serif; outline: none; }
@media (prefers-color-scheme: dark) { :host { --surface: #151920; --raised: #20262f; --line: #36404e; --text: #e3e7ee; --dim: #9aa4b4; --accent: #7ea6ff; --on: #0c1526; --bad: #ff8a86; --good: #5cc78a; } }
* { box-sizing: border-box; }
header { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 8px; padding: 7px 12px; background: var(--raised); border-bottom: 1px solid var(--line); }
h2, h3 { margin: 0; font-size: 12px; }
h2 { margin-right: 4px; }
h3 { padding: 8px 0 4px; color: var(--dim); }
[role=group] { display: flex; flex-wrap: wrap; gap: 4px; align-items: center; margin-left: auto; }
button { font: inherit; color: inherit; background: var(--surface); border: 1px solid var(--line); border-radius: 5px; padding: 2px 9px; min-height: 24px; cursor: pointer; }
button:hover { border-color: var(--dim); }
button[aria-pressed=true] { background: var(--bad); border-color: var(--bad); color: var(--surface); font-weight: 600; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.connection { font-weight: 600; }
.live { color: var(--good); }
.lost { color: var(--bad); }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
section { overflow: auto; padding: 0 12px 10px; min-width: 0; }
section + section { border-left: 1px solid var(--line); }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; font-weight: 500; color: var(--dim); white-space: nowrap; }
th, td { padding: 2px 10px 2px 0; vertical-align: top; border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; }
td.short { white-space: nowrap; overflow-wrap: normal; font-variant-numeric: tabular-nums; }
td.code, pre, summary { font-family: ui-monospace, monospace; font-size: 11px; }
p { margin: 2px 0; color: var(--dim); }
details { border-bottom: 1px solid var(--line); }
summary { padding: 3px 0; cursor: pointer; overflow-wrap: anywhere; }
pre { margin: 0 0 6px; padding: 6px; background: var(--raised); white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 760px) { :host { height: 60vh; } main { grid-template-columns: minmax(0, 1fr); overflow: auto; } section { overflow: visible; } section + section { border: 0; } [role=group] { margin-left: 0; } }
@media (forced-colors: active) { button[aria-pressed=true] { forced-color-adjust: none; background: Highlight; color: HighlightText; border-color: Highlight; } }
`;
