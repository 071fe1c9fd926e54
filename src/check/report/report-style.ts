/** How a report looks, in the file of `--format html` and in the page, whose colours it takes where there are such. */
export const reportStyle = `
.report { --of-error: var(--wrong, light-dark(#b3261e, #f2938c)); --of-warning: var(--warning, light-dark(#7a5200, #e0b050)); --of-note: var(--note, light-dark(#1f5f99, #8abbe8)); --of-line: var(--line, light-dark(#8886, #8886)); min-width: 0; overflow-wrap: anywhere; }
.report h2 { font-size: 1.15rem; } .report h3 { font-size: 1rem; margin: 1.6rem 0 .4rem; border-bottom: 1px solid var(--of-line); }
.report .rule { margin: .8rem 0; } .report .id { font-family: ui-monospace, monospace; font-size: .9em; font-weight: 600; }
.report .error .id { color: var(--of-error); } .report .warning .id { color: var(--of-warning); } .report .note .id { color: var(--of-note); }
.report .facts { font-size: .85em; color: var(--dim, light-dark(#555, #aaa)); }
.report a { color: inherit; } .report ul { list-style: disc; margin: .3rem 0; padding-left: 1.2rem; }
.report pre { overflow: auto; max-height: 30rem; margin: .4rem 0; padding: .6rem; border: 1px solid var(--of-line); white-space: pre-wrap; font-size: .8rem; }
.report mark { background: light-dark(#ffd9d6, #5c1f1b); color: inherit; outline: 1px solid var(--of-error); }
.report summary { cursor: pointer; padding: .15rem 0; min-height: 24px; }
.report details { content-visibility: auto; contain-intrinsic-size: auto 1.8rem; }
.report li code { font-size: .8em; }
`;
